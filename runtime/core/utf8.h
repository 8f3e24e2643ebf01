// Checks bytes for UTF-8.
#pragma once

#include <cstddef>
#include <string_view>

namespace patchbay {

/// Bytes of the character that `text`, which is not empty, begins with; 0 for a zero byte and for
/// what is not UTF-8.
std::size_t Utf8Length(std::string_view text);

}  // namespace patchbay
