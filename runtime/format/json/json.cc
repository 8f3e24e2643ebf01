#include "runtime/format/json/json.h"

#include <algorithm>
#include <utility>

#include "runtime/core/counted.h"
#include "runtime/core/outcome.h"
#include "runtime/core/printable.h"
#include "runtime/core/strings.h"
#include "runtime/format/json/json_error.h"

namespace patchbay {
namespace {

Status Wrong(std::string_view what, const char* key, std::string_view expected) {
  return ErrorAbout(absl::StatusCode::kInvalidArgument, "", what,
                    StrCat("key '", key, "': expected ", expected));
}

constexpr std::string_view kHexDigits = "0123456789abcdef";
/// How a zero byte looks in JSON, and whatever DumpJson escapes with one.
constexpr std::string_view kZeroInText = "\\u0000";

std::string Escaped(std::string_view text) {
  std::string out;
  while (!text.empty()) {
    const std::size_t length = Utf8Length(text);
    if (length > 0) {
      out.append(text.substr(0, length));
    } else {
      const auto byte = static_cast<unsigned char>(text[0]);
      out += '\0';
      out += kHexDigits[byte >> 4];
      out += kHexDigits[byte & 0xF];
    }
    text.remove_prefix(length > 0 ? length : 1);
  }
  return out;
}

/// A zero byte that no escape follows stays one.
std::string Unescaped(std::string_view text) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const auto digit = [&](std::size_t at) {
      return at < text.size() ? kHexDigits.find(text[at]) : std::string_view::npos;
    };
    const std::size_t high = digit(i + 1), low = digit(i + 2);
    const bool escapes = text[i] == '\0' && high != std::string_view::npos &&
                         low != std::string_view::npos && (high >= 8 || high + low == 0);
    out += escapes ? static_cast<char>(high << 4 | low) : text[i];
    if (escapes) i += 2;
  }
  return out;
}

/// `value` with `change` applied to every text and key in it.
Json WithTexts(const Json& value, std::string (*change)(std::string_view)) {
  if (value.is_string()) return change(value.get_ref<const std::string&>());
  if (value.is_array()) {
    Json out = Json::array();
    for (const Json& member : value) out.push_back(WithTexts(member, change));
    return out;
  }
  if (!value.is_object()) return value;
  Json out = Json::object();
  for (const auto& [key, member] : value.items()) out[change(key)] = WithTexts(member, change);
  return out;
}

std::string DumpPlain(const Json& value) {
  return value.dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace

bool TooDeep(std::string_view text) {
  const auto opened =
      std::count_if(text.begin(), text.end(), [](char c) { return (c == '[') | (c == '{'); });
  if (opened <= kMaxJsonDepth) return false;  // as in most documents, by vectors
  int depth = 0;
  bool in_string = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (in_string) {
      if (c == '\\') ++i;
      if (c == '"') in_string = false;
    } else if (c == '"') {
      in_string = true;
    } else if (c == '[' || c == '{') {
      if (++depth > kMaxJsonDepth) return true;
    } else if (c == ']' || c == '}') {
      --depth;
    }
  }
  return false;
}

StatusOr<Json> ParseJson(std::string_view text, std::string_view what, std::size_t max_bytes) {
  if (text.size() > max_bytes) {
    return ErrorAbout(absl::StatusCode::kInvalidArgument, "parse json", what,
                      StrCat(BytesBeyond(text.size(), max_bytes)));
  }
  if (TooDeep(text)) {
    return ErrorAbout(absl::StatusCode::kInvalidArgument, "parse json", what,
                      StrCat("nested deeper than ", kMaxJsonDepth));
  }
  try {
    Json value = Json::parse(text);
    if (text.find(kZeroInText) == std::string_view::npos) return value;
    return WithTexts(value, Unescaped);
  } catch (const Json::exception& error) {
    return ErrorAbout(absl::StatusCode::kInvalidArgument, "parse json", what,
                      JsonFaultOf(text, error));
  }
}

std::string DumpJson(const Json& value) {
  constexpr std::string_view kReplacement = "\xEF\xBF\xBD";  // in the place of what is not UTF-8
  std::string text = DumpPlain(value);
  const bool is_plain =
      text.find(kZeroInText) == std::string::npos && text.find(kReplacement) == std::string::npos;
  return is_plain ? text : DumpPlain(WithTexts(value, Escaped));
}

StatusOr<const Json*> JsonMember(const Json& object, const char* key, std::string_view what) {
  if (!object.is_object()) return Wrong(what, key, "an object around it");
  const auto it = object.find(key);
  if (it == object.end()) {
    return ErrorAbout(absl::StatusCode::kInvalidArgument, "", what,
                      StrCat("key '", key, "' is missing"));
  }
  return &*it;
}

StatusOr<std::int64_t> JsonInt(const Json& object, const char* key, std::string_view what) {
  PB_ASSIGN_OR_RETURN(const Json* member, JsonMember(object, key, what));
  if (!member->is_number_integer()) return Wrong(what, key, "an integer");
  if (member->is_number_unsigned() && member->get<std::uint64_t>() > INT64_MAX)
    return Wrong(what, key, "a 63-bit integer");
  return member->get<std::int64_t>();
}

StatusOr<std::uint64_t> JsonCount(const Json& object, const char* key, std::string_view what) {
  PB_ASSIGN_OR_RETURN(const std::int64_t value, JsonInt(object, key, what));
  if (value < 0) return Wrong(what, key, "0 or more");
  return static_cast<std::uint64_t>(value);
}

StatusOr<double> JsonDouble(const Json& object, const char* key, std::string_view what) {
  PB_ASSIGN_OR_RETURN(const Json* member, JsonMember(object, key, what));
  if (!member->is_number()) return Wrong(what, key, "a number");
  return member->get<double>();
}

StatusOr<bool> JsonBool(const Json& object, const char* key, std::string_view what) {
  PB_ASSIGN_OR_RETURN(const Json* member, JsonMember(object, key, what));
  if (!member->is_boolean()) return Wrong(what, key, "true or false");
  return member->get<bool>();
}

StatusOr<std::string> JsonString(const Json& object, const char* key, std::string_view what) {
  PB_ASSIGN_OR_RETURN(const Json* member, JsonMember(object, key, what));
  if (!member->is_string()) return Wrong(what, key, "a string");
  return member->get<std::string>();
}

}  // namespace patchbay
