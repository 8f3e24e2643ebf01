#include "runtime/model/plan/coordinates.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <optional>
#include <utility>

#include "runtime/core/strings.h"
#include "runtime/format/csv/csv.h"
#include "runtime/format/csv/table_text.h"
#include "runtime/model/plan/class_table.h"

namespace patchbay::plan {
namespace {

constexpr std::array<std::string_view, 3> kColumns = {"slide_id", "x", "y"};

/// Cells of one line. Quotes are understood, line ends in them are not.
std::vector<std::string> CellsOf(std::string_view line, char separator) {
  std::vector<std::string> cells;
  if (line.find('"') != std::string_view::npos) {
    CsvLines parsed = ParseCsvLines(line, separator);
    if (!parsed.rows.empty()) cells = std::move(parsed.rows.front().fields);
  } else {
    for (std::size_t at = 0; at <= line.size();) {
      const std::size_t end = std::min(line.find(separator, at), line.size());
      cells.emplace_back(line.substr(at, end - at));
      at = end + 1;
    }
  }
  for (std::string& cell : cells) cell = std::string(TrimmedCell(cell));
  return cells;
}

/// "512" and "512.0".
std::optional<std::int32_t> NumberOf(std::string_view cell) {
  const std::size_t dot = cell.find('.');
  if (dot != std::string_view::npos) {
    const std::string_view zeros = cell.substr(dot + 1);
    if (zeros.empty() || zeros.find_first_not_of('0') != std::string_view::npos) return {};
    cell = cell.substr(0, dot);
  }
  std::int32_t value = 0;
  const auto [end, error] = std::from_chars(cell.data(), cell.data() + cell.size(), value);
  if (error != std::errc() || end != cell.data() + cell.size() || value < 0) return {};
  return value;
}

/// Lines of a table, one by one: it may be large.
class Lines {
 public:
  Lines(const TableText& table) : left_(table.text), number_(table.lines_before) {}
  /// The next line that is not empty; its number is line().
  bool Next(std::string_view& line) {
    while (!left_.empty()) {
      const std::size_t end = std::min(left_.find('\n'), left_.size());
      line = TrimmedCell(left_.substr(0, end));
      left_.remove_prefix(std::min(left_.size(), end + 1));
      ++number_;
      if (!line.empty()) return true;
    }
    return false;
  }
  int line() const { return number_; }

 private:
  std::string_view left_;
  int number_;
};

/// The columns that are read: the names of kColumns, then the label's if there is one; and where
/// each stands.
struct Columns {
  std::vector<std::string> names;
  std::vector<std::size_t> at;
};

StatusOr<Columns> Heading(const std::vector<std::string>& names, const std::string& label,
                          std::string_view source, int line, Coordinates& out) {
  Columns columns{{kColumns.begin(), kColumns.end()}, {}};
  if (!label.empty()) columns.names.push_back(label);
  for (const std::string& wanted : columns.names) {
    const auto found = std::find(names.begin(), names.end(), wanted);
    if (found != names.end() && std::find(found + 1, names.end(), wanted) != names.end()) {
      return WrongLine(source, line, StrCat("two columns are named '", wanted, "'"));
    }
    if (found == names.end()) {
      const std::string near = Nearest(wanted, names);
      return WrongLine(
          source, line,
          StrCat("no column '", wanted, "'", near.empty() ? "" : StrCat(" (is it '", near, "'?)"),
                 "; the first line names the columns"));
    }
    columns.at.push_back(static_cast<std::size_t>(found - names.begin()));
  }
  for (std::size_t i = 0; i < names.size(); ++i) {
    const bool is_read = std::find(columns.at.begin(), columns.at.end(), i) != columns.at.end();
    if (!is_read && !names[i].empty()) out.ignored.push_back(names[i]);
  }
  return columns;
}

/// One line into the places of its slide.
Status TakeLine(const std::vector<std::string>& cells, const Columns& columns,
                std::string_view source, int line, Coordinates& out) {
  const auto wrong = [&](std::size_t column, std::string_view cause) {
    return WrongLine(source, line, StrCat("column '", columns.names[column], "': ", cause));
  };
  const auto cell = [&](std::size_t column) {
    return columns.at[column] < cells.size() ? cells[columns.at[column]] : std::string();
  };
  const std::string id = cell(0);
  if (id.empty()) return wrong(0, "it is empty");
  std::int32_t numbers[] = {0, 0, 0, kIgnoreClass};  // by column
  for (std::size_t column = 1; column < columns.at.size(); ++column) {
    const bool is_label = column == kColumns.size();
    const std::string text = cell(column);
    const auto number = NumberOf(text);
    if (number) numbers[column] = *number;
    if (number || (is_label && text.empty())) continue;
    return wrong(column, StrCat("'", text, "' is not a whole number ", is_label ? "" : "of pixels ",
                                "from 0 to 2147483647"));
  }
  const auto [slide, is_new] = out.slides.try_emplace(id);
  if (is_new) {
    slide->second.line = line;
    slide->second.number = static_cast<std::uint32_t>(out.slides.size() - 1);
  }
  slide->second.places.push_back({.y = numbers[2], .x = numbers[1]});
  if (columns.at.size() > kColumns.size()) slide->second.labels.values.push_back(numbers[3]);
  AppendListed(slide->second.number, 1, out.order);
  return absl::OkStatus();
}

}  // namespace

StatusOr<Coordinates> ParseCoordinates(std::string_view text, std::string_view source,
                                       const std::string& label_column) {
  PB_ASSIGN_OR_RETURN(const TableText table, OpenTableText(text, source));
  Coordinates out;
  Lines lines(table);
  std::string_view line;
  if (!lines.Next(line)) return WrongLine(source, 1, "the table is empty");
  PB_ASSIGN_OR_RETURN(const auto columns, Heading(CellsOf(line, table.separator), label_column,
                                                  source, lines.line(), out));
  std::size_t count = 0;
  while (lines.Next(line)) {
    if (line.find_first_not_of(table.separator) == std::string_view::npos) continue;
    if (++count > kMaxListedPositions) {
      return WrongLine(source, lines.line(), StrCat("more than ", kMaxListedPositions, " places"));
    }
    PB_RETURN_IF_ERROR(
        TakeLine(CellsOf(line, table.separator), columns, source, lines.line(), out));
  }
  if (count == 0) return WrongLine(source, lines.line(), "the table has no rows");
  return out;
}

}  // namespace patchbay::plan
