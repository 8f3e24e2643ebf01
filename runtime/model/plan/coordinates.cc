#include "runtime/model/plan/coordinates.h"

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
std::optional<std::int32_t> PixelOf(std::string_view cell) {
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

/// Where the three columns stand.
StatusOr<std::array<std::size_t, 3>> Heading(const std::vector<std::string>& names,
                                             std::string_view source, int line, Coordinates& out) {
  std::array<std::size_t, 3> places{};
  for (std::size_t k = 0; k < kColumns.size(); ++k) {
    std::size_t found = names.size();
    for (std::size_t i = 0; i < names.size(); ++i) {
      if (names[i] != kColumns[k]) continue;
      if (found != names.size()) {
        return WrongLine(source, line, StrCat("two columns are named '", kColumns[k], "'"));
      }
      found = i;
    }
    if (found == names.size()) {
      const std::string near = Nearest(std::string(kColumns[k]), names);
      return WrongLine(source, line,
                       StrCat("no column '", kColumns[k], "'",
                              near.empty() ? "" : StrCat(" (is it '", near, "'?)"),
                              "; the first line names the columns"));
    }
    places[k] = found;
  }
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (i != places[0] && i != places[1] && i != places[2] && !names[i].empty()) {
      out.ignored.push_back(names[i]);
    }
  }
  return places;
}

/// One line into the places of its slide.
Status TakeLine(const std::vector<std::string>& cells, const std::array<std::size_t, 3>& at,
                std::string_view source, int line, Coordinates& out) {
  const auto wrong = [&](std::size_t column, std::string_view cause) {
    return WrongLine(source, line, StrCat("column '", kColumns[column], "': ", cause));
  };
  const auto cell = [&](std::size_t column) {
    return at[column] < cells.size() ? cells[at[column]] : std::string();
  };
  const std::string id = cell(0);
  if (id.empty()) return wrong(0, "it is empty");
  PlanePoint place;
  for (const std::size_t column : {1, 2}) {
    const std::string text = cell(column);
    const auto pixel = PixelOf(text);
    if (!pixel) {
      return wrong(column,
                   StrCat("'", text, "' is not a whole number of pixels from 0 to 2147483647"));
    }
    (column == 1 ? place.x : place.y) = *pixel;
  }
  const auto [slide, is_new] = out.slides.try_emplace(id);
  if (is_new) {
    slide->second.line = line;
    slide->second.number = static_cast<std::uint32_t>(out.slides.size() - 1);
  }
  slide->second.places.push_back(place);
  AppendListed(slide->second.number, 1, out.order);
  return absl::OkStatus();
}

}  // namespace

StatusOr<Coordinates> ParseCoordinates(std::string_view text, std::string_view source) {
  PB_ASSIGN_OR_RETURN(const TableText table, OpenTableText(text, source));
  Coordinates out;
  Lines lines(table);
  std::string_view line;
  if (!lines.Next(line)) return WrongLine(source, 1, "the table is empty");
  PB_ASSIGN_OR_RETURN(const auto columns,
                      Heading(CellsOf(line, table.separator), source, lines.line(), out));
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
