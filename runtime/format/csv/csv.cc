#include "runtime/format/csv/csv.h"

#include <cstddef>
#include <utility>

#include "runtime/core/strings.h"

namespace patchbay {

std::string CsvField(const std::string& text) {
  if (text.find_first_of(",\"\r\n") == std::string::npos) return text;
  std::string quoted = "\"";
  for (const char c : text) {
    if (c == '"') quoted.push_back('"');
    quoted.push_back(c);
  }
  return quoted + "\"";
}

std::string CsvRow(const std::vector<std::string>& fields) { return StrJoin(fields, ",") + "\r\n"; }

CsvLines ParseCsvLines(std::string_view text, char separator) {
  CsvLines table;
  CsvLine row{{""}, 1};
  bool is_quoted = false, is_empty = true;
  int line = 1, quote_line = 0;
  const auto end_row = [&] {
    if (!is_empty) table.rows.push_back(std::move(row));
    row = {{""}, line};
    is_empty = true;
  };
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    line += c == '\n' ? 1 : 0;
    if (is_quoted) {
      const bool is_doubled = c == '"' && i + 1 < text.size() && text[i + 1] == '"';
      if (c != '"' || is_doubled) row.fields.back().push_back(c);
      if (is_doubled) ++i;
      is_quoted = c != '"' || is_doubled;
    } else if (c == '\n') {
      end_row();
    } else if (c == separator) {
      row.fields.emplace_back();
      is_empty = false;
    } else if (c == '"') {
      is_quoted = true;
      quote_line = line;
      is_empty = false;
    } else if (c != '\r') {
      row.fields.back().push_back(c);
      is_empty = false;
    }
  }
  end_row();
  if (is_quoted) table.open_quote = quote_line;
  return table;
}

std::vector<std::vector<std::string>> ParseCsv(std::string_view text) {
  std::vector<std::vector<std::string>> rows;
  for (CsvLine& row : ParseCsvLines(text, ',').rows) rows.push_back(std::move(row.fields));
  return rows;
}

}  // namespace patchbay
