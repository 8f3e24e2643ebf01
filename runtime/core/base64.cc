#include "runtime/core/base64.h"

#include <cstddef>
#include <cstdint>

namespace patchbay {
namespace {

constexpr std::string_view kDigits =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

std::uint32_t ByteAt(std::string_view bytes, std::size_t i) {
  return i < bytes.size() ? static_cast<std::uint8_t>(bytes[i]) : 0;
}

/// The bytes of canonical and other text alike; false at a digit that is none.
bool Decode(std::string_view text, std::size_t padding, std::string& bytes) {
  for (std::size_t i = 0; i < text.size(); i += 4) {
    std::uint32_t group = 0;
    for (std::size_t j = i; j < i + 4; ++j) {
      const std::size_t digit = j >= text.size() - padding ? 0 : kDigits.find(text[j]);
      if (digit == std::string_view::npos) return false;
      group = group << 6 | static_cast<std::uint32_t>(digit);
    }
    for (int shift = 16; shift >= 0; shift -= 8) bytes.push_back(static_cast<char>(group >> shift));
  }
  bytes.resize(bytes.size() - padding);
  return true;
}

}  // namespace

std::string Base64Of(std::string_view bytes) {
  std::string text;
  text.reserve((bytes.size() + 2) / 3 * 4);
  for (std::size_t i = 0; i < bytes.size(); i += 3) {
    const std::uint32_t group =
        ByteAt(bytes, i) << 16 | ByteAt(bytes, i + 1) << 8 | ByteAt(bytes, i + 2);
    text.push_back(kDigits[group >> 18]);
    text.push_back(kDigits[group >> 12 & 63]);
    text.push_back(i + 1 < bytes.size() ? kDigits[group >> 6 & 63] : '=');
    text.push_back(i + 2 < bytes.size() ? kDigits[group & 63] : '=');
  }
  return text;
}

StatusOr<std::string> FromBase64(std::string_view text) {
  std::string bytes;
  std::size_t padding = 0;
  while (padding < 2 && padding < text.size() && text[text.size() - 1 - padding] == '=') ++padding;
  // Encoding again also refuses bits set beyond the last byte, so that one text stands for it.
  if (text.size() % 4 != 0 || !Decode(text, padding, bytes) || Base64Of(bytes) != text) {
    return absl::InvalidArgumentError("base64: malformed");
  }
  return bytes;
}

}  // namespace patchbay
