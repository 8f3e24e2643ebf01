// Unsigned integers in as few bytes as they need (LEB128).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace patchbay::plan {

inline void AppendVarint(std::string& out, std::uint64_t value) {
  for (; value >= 0x80; value >>= 7) out.push_back(static_cast<char>((value & 0x7F) | 0x80));
  out.push_back(static_cast<char>(value));
}

/// Takes one off the front of `text`; false when it is cut short, longer than it has to be, or
/// above `most`.
inline bool TakeVarint(std::string_view& text, std::uint64_t most, std::uint64_t& value) {
  value = 0;
  for (int shift = 0; shift < 64 && !text.empty(); shift += 7) {
    const auto byte = static_cast<std::uint8_t>(text.front());
    text.remove_prefix(1);
    if (shift == 63 && byte > 1) return false;
    value |= static_cast<std::uint64_t>(byte & 0x7F) << shift;
    if (byte < 0x80) return value <= most && (byte != 0 || shift == 0);
  }
  return false;
}

}  // namespace patchbay::plan
