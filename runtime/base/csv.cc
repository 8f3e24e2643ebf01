#include "runtime/base/csv.h"

#include <cstddef>

#include "runtime/base/strings.h"

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

std::vector<std::vector<std::string>> ParseCsv(std::string_view text) {
  std::vector<std::vector<std::string>> rows;
  std::vector<std::string> row = {""};
  bool is_quoted = false, is_empty = true;
  const auto end_row = [&] {
    if (!is_empty) rows.push_back(row);
    row = {""};
    is_empty = true;
  };
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (is_quoted) {
      const bool is_doubled = c == '"' && i + 1 < text.size() && text[i + 1] == '"';
      if (c != '"' || is_doubled) row.back().push_back(c);
      if (is_doubled) ++i;
      is_quoted = c != '"' || is_doubled;
    } else if (c == '\n') {
      end_row();
    } else if (c == ',') {
      row.emplace_back();
      is_empty = false;
    } else if (c == '"') {
      is_quoted = true;
      is_empty = false;
    } else if (c != '\r') {
      row.back().push_back(c);
      is_empty = false;
    }
  }
  end_row();
  return rows;
}

}  // namespace patchbay
