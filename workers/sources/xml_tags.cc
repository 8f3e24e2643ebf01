#include "workers/sources/xml_tags.h"

#include <charconv>
#include <cstdint>
#include <utility>

namespace patchbay::workers {
namespace {

constexpr std::string_view kSpace = " \t\r\n";
constexpr std::size_t kMaxEntityBytes = 12;

/// The place of the '>' that ends a tag: not one within quotes.
std::size_t EndOfTag(std::string_view text) {
  char quote = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (quote != 0) {
      if (text[i] == quote) quote = 0;
    } else if (text[i] == '"' || text[i] == '\'') {
      quote = text[i];
    } else if (text[i] == '>') {
      return i;
    }
  }
  return std::string_view::npos;
}

void AppendUtf8(std::uint32_t code, std::string& out) {
  const auto put = [&](std::uint32_t byte) { out.push_back(static_cast<char>(byte)); };
  if (code < 0x80) return put(code);
  if (code < 0x800) {
    put(0xC0 | (code >> 6));
  } else if (code < 0x10000) {
    put(0xE0 | (code >> 12));
    put(0x80 | ((code >> 6) & 0x3F));
  } else {
    put(0xF0 | (code >> 18));
    put(0x80 | ((code >> 12) & 0x3F));
    put(0x80 | ((code >> 6) & 0x3F));
  }
  put(0x80 | (code & 0x3F));
}

/// The character that "&...;" stands for, 0 where it stands for none.
std::uint32_t CharacterOf(std::string_view entity) {
  constexpr std::pair<std::string_view, char> kNamed[] = {
      {"amp", '&'}, {"lt", '<'}, {"gt", '>'}, {"quot", '"'}, {"apos", '\''}};
  for (const auto& [name, character] : kNamed) {
    if (name == entity) return static_cast<std::uint32_t>(character);
  }
  if (entity.size() < 2 || entity[0] != '#') return 0;
  const bool is_hex = entity[1] == 'x';
  entity.remove_prefix(is_hex ? 2 : 1);
  std::uint32_t code = 0;
  const auto read =
      std::from_chars(entity.data(), entity.data() + entity.size(), code, is_hex ? 16 : 10);
  const bool is_whole = read.ec == std::errc() && read.ptr == entity.data() + entity.size();
  const bool is_character = code <= 0x10FFFF && (code < 0xD800 || code > 0xDFFF);
  return is_whole && is_character ? code : 0;
}

}  // namespace

std::optional<XmlTag> NextXmlTag(std::string_view text) {
  for (std::size_t at = text.find('<'); at != std::string_view::npos; at = text.find('<')) {
    text.remove_prefix(at + 1);
    if (text.starts_with("!--")) {
      const std::size_t end = text.find("-->");
      if (end == std::string_view::npos) return std::nullopt;
      text.remove_prefix(end + 3);
      continue;
    }
    const std::size_t end = EndOfTag(text);
    if (end == std::string_view::npos) return std::nullopt;
    XmlTag tag;
    tag.attributes = text.substr(0, end);
    tag.rest = text.substr(end + 1);
    if (text.starts_with("?") || text.starts_with("!")) {
      text = tag.rest;
      continue;
    }
    tag.is_end = tag.attributes.starts_with("/");
    tag.is_empty = !tag.is_end && tag.attributes.ends_with("/");
    if (tag.is_end) tag.attributes.remove_prefix(1);
    if (tag.is_empty) tag.attributes.remove_suffix(1);
    tag.name = tag.attributes.substr(0, tag.attributes.find_first_of(kSpace));
    tag.attributes.remove_prefix(tag.name.size());
    const std::size_t colon = tag.name.find(':');
    if (colon != std::string_view::npos) tag.name.remove_prefix(colon + 1);
    return tag;
  }
  return std::nullopt;
}

std::optional<XmlTag> FindXmlTag(std::string_view text, std::string_view name) {
  for (auto tag = NextXmlTag(text); tag; tag = NextXmlTag(tag->rest)) {
    if (!tag->is_end && tag->name == name) return tag;
  }
  return std::nullopt;
}

std::optional<std::string_view> XmlAttribute(const XmlTag& tag, std::string_view name) {
  std::string_view rest = tag.attributes;
  while (true) {
    const std::size_t begin = rest.find_first_not_of(kSpace);
    const std::size_t equals = rest.find('=');
    if (begin == std::string_view::npos || equals == std::string_view::npos) return std::nullopt;
    const std::size_t open = rest.find_first_not_of(kSpace, equals + 1);
    if (open == std::string_view::npos || (rest[open] != '"' && rest[open] != '\'')) {
      return std::nullopt;
    }
    const std::size_t close = rest.find(rest[open], open + 1);
    if (close == std::string_view::npos || equals < begin) return std::nullopt;
    std::string_view key = rest.substr(begin, equals - begin);
    key = key.substr(0, key.find_last_not_of(kSpace) + 1);
    if (key == name) return rest.substr(open + 1, close - open - 1);
    rest.remove_prefix(close + 1);
  }
}

std::string DecodedXml(std::string_view value) {
  std::string out;
  while (!value.empty()) {
    const std::size_t at = value.find('&');
    out += value.substr(0, at);
    if (at == std::string_view::npos) break;
    value.remove_prefix(at);
    const std::size_t end = value.substr(0, kMaxEntityBytes).find(';');
    const std::uint32_t code =
        end == std::string_view::npos ? 0 : CharacterOf(value.substr(1, end - 1));
    if (code == 0) {
      out += '&';
      value.remove_prefix(1);
      continue;
    }
    AppendUtf8(code, out);
    value.remove_prefix(end + 1);
  }
  return out;
}

}  // namespace patchbay::workers
