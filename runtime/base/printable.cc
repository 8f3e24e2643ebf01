#include "runtime/base/printable.h"

#include <cstdio>

namespace patchbay {
namespace {

bool IsControl(std::string_view text, std::size_t at) {
  const auto c = static_cast<unsigned char>(text[at]);
  const auto before = at > 0 ? static_cast<unsigned char>(text[at - 1]) : 0;
  const bool is_c1 = c >= 0x80 && c < 0xA0 && before == 0xC2;  // U+0080 to U+009F
  return c < 0x20 || c == 0x7F || is_c1;
}

}  // namespace

std::string Printable(std::string_view text) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
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
