// Text of unknown origin on one line of a terminal or a log.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace patchbay {

/// Bytes of the character that `text`, which is not empty, begins with; 0 for a zero byte and for
/// what is not UTF-8.
std::size_t Utf8Length(std::string_view text);

/// `text` with its control characters as "\x1b": what would steer a terminal, and the ends of lines
/// and tabs, with which a file's name could play a line or a column that nobody wrote. Those of
/// Unicode that turn the direction of text, or end a line, as "\u202e".
std::string Printable(std::string_view text);

}  // namespace patchbay
