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

}  // namespace patchbay
