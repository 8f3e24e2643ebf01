#include "runtime/core/printable.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <iterator>
#include <utility>

namespace patchbay {
namespace {

/// A lead byte: the length of its character, and the range of the second byte.
struct Lead {
  unsigned char first, last;
  std::size_t length;
  unsigned char second_min, second_max;
};
constexpr std::array kLeads = {Lead{0x01, 0x7F, 1, 0, 0},       Lead{0xC2, 0xDF, 2, 0x80, 0xBF},
                               Lead{0xE0, 0xE0, 3, 0xA0, 0xBF}, Lead{0xE1, 0xEC, 3, 0x80, 0xBF},
                               Lead{0xED, 0xED, 3, 0x80, 0x9F}, Lead{0xEE, 0xEF, 3, 0x80, 0xBF},
                               Lead{0xF0, 0xF0, 4, 0x90, 0xBF}, Lead{0xF1, 0xF3, 4, 0x80, 0xBF},
                               Lead{0xF4, 0xF4, 4, 0x80, 0x8F}};

bool IsControl(std::string_view text, std::size_t at) {
  const auto c = static_cast<unsigned char>(text[at]);
  const auto before = at > 0 ? static_cast<unsigned char>(text[at - 1]) : 0;
  const bool is_c1 = c >= 0x80 && c < 0xA0 && before == 0xC2;  // U+0080 to U+009F
  return c < 0x20 || c == 0x7F || is_c1;
}

/// Marks that turn the direction of the text around them, and the separators that end a line or a
/// paragraph: with them a name shows as another.
constexpr std::pair<std::string_view, std::string_view> kTurns[] = {
    {"\u061c", "\\u061c"}, {"\u200e", "\\u200e"}, {"\u200f", "\\u200f"}, {"\u2028", "\\u2028"},
    {"\u2029", "\\u2029"}, {"\u202a", "\\u202a"}, {"\u202b", "\\u202b"}, {"\u202c", "\\u202c"},
    {"\u202d", "\\u202d"}, {"\u202e", "\\u202e"}, {"\u2066", "\\u2066"}, {"\u2067", "\\u2067"},
    {"\u2068", "\\u2068"}, {"\u2069", "\\u2069"},
};

/// The row of the character at the beginning of `text`, or null.
const std::pair<std::string_view, std::string_view>* TurnAt(std::string_view text) {
  const auto begins = [&](const auto& row) {
    return text.substr(0, row.first.size()) == row.first;
  };
  const auto* row = std::find_if(std::begin(kTurns), std::end(kTurns), begins);
  return row == std::end(kTurns) ? nullptr : row;
}

}  // namespace

std::size_t Utf8Length(std::string_view text) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  for (const Lead& lead : kLeads) {
    if (byte(0) < lead.first || byte(0) > lead.last) continue;
    if (text.size() < lead.length) return 0;
    for (std::size_t i = 1; i < lead.length; ++i) {
      const unsigned char min = i == 1 ? lead.second_min : 0x80;
      const unsigned char max = i == 1 ? lead.second_max : 0xBF;
      if (byte(i) < min || byte(i) > max) return 0;
    }
    return lead.length;
  }
  return 0;
}

std::string Printable(std::string_view text) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (const auto* turn = TurnAt(text.substr(i))) {
      out += turn->second;
      i += turn->first.size() - 1;
      continue;
    }
    if (!IsControl(text, i)) {
      out += text[i];
      continue;
    }
    const auto c = static_cast<unsigned char>(text[i]);
    if (c >= 0x80) out.pop_back();  // the first of its two bytes
    char escaped[8];
    std::snprintf(escaped, sizeof(escaped), "\\x%02x", c);
    out += escaped;
  }
  return out;
}

}  // namespace patchbay
