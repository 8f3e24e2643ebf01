// Bytes within JSON (RFC 4648, with padding).
#pragma once

#include <string>
#include <string_view>

#include "runtime/core/status.h"

namespace patchbay {

std::string Base64Of(std::string_view bytes);
/// InvalidArgument for anything that Base64Of does not write.
StatusOr<std::string> FromBase64(std::string_view text);

}  // namespace patchbay
