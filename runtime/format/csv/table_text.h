// The text of a table as spreadsheets write it, before its rows are read.
#pragma once

#include <string>
#include <string_view>

#include "runtime/core/status.h"

namespace patchbay {

/// How the lines of a table are separated; the text behind byte order mark and Excel's hint.
struct TableText {
  std::string_view text;
  char separator = ',';
  int lines_before = 0;  ///< lines of the file before `text`
};

/// InvalidArgument with file and line for text that is not UTF-8.
StatusOr<TableText> OpenTableText(std::string_view text, std::string_view source);

/// "coords.csv:12: cause".
Status WrongLine(std::string_view source, int line, std::string_view cause);

/// A cell without surrounding spaces, including non-breaking and zero-width spaces.
std::string_view TrimmedCell(std::string_view cell);

/// The text with A to Z as a to z; other letters stay.
std::string LowerCase(std::string_view text);

}  // namespace patchbay
