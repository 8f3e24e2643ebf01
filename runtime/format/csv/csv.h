// Tables for spreadsheets (RFC 4180).
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace patchbay {

/// `text` as one field: in quotes where it has to be.
std::string CsvField(const std::string& text);
/// Fields that are CsvField already, as a row with its line end.
std::string CsvRow(const std::vector<std::string>& fields);

/// The rows of a table, heading included; lenient about line ends and stray quotes.
std::vector<std::vector<std::string>> ParseCsv(std::string_view text);

/// A row, and the line of the text it begins in.
struct CsvLine {
  std::vector<std::string> fields;
  int line = 0;  ///< from 1
};
struct CsvLines {
  std::vector<CsvLine> rows;  ///< without empty lines
  int open_quote = 0;         ///< the line of an unclosed quote; 0 = none
};
/// ParseCsv with any separator, and with line numbers for errors.
CsvLines ParseCsvLines(std::string_view text, char separator);

}  // namespace patchbay
