// Text of unknown origin on one line of a terminal or a log.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace patchbay {

/// Bytes of the character that `text`, which is not empty, begins with; 0 for a zero byte and for
/// bytes that are not UTF-8.
std::size_t Utf8Length(std::string_view text);

/// `text` with its control characters escaped as "\x1b": they could control a terminal, or, as line
/// ends and tabs, fake a line or a column. Unicode characters that change the direction of text or
/// end a line are escaped as "\u202e".
std::string Printable(std::string_view text);

}  // namespace patchbay
