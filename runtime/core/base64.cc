#include "runtime/core/base64.h"

#include "absl/strings/escaping.h"

namespace patchbay {

std::string Base64Of(std::string_view bytes) {
  return absl::Base64Escape({bytes.data(), bytes.size()});
}

StatusOr<std::string> FromBase64(std::string_view text) {
  std::string bytes;
  // Encoding again refuses spaces, missing padding and bits set beyond the last byte, so that one
  // text stands for the bytes.
  if (!absl::Base64Unescape({text.data(), text.size()}, &bytes) || Base64Of(bytes) != text) {
    return InvalidArgument("base64: malformed");
  }
  return bytes;
}

}  // namespace patchbay
