#include "runtime/model/plan/cohort_table.h"

#include <algorithm>
#include <array>
#include <unordered_map>
#include <utility>

#include "runtime/core/hash.h"
#include "runtime/core/strings.h"
#include "runtime/format/csv/csv.h"
#include "runtime/format/csv/table_text.h"
#include "runtime/model/plan/plan.h"
#include "runtime/model/source/channel_names.h"
#include "runtime/model/source/modality.h"

namespace patchbay::plan {
namespace {

/// Endings that are more than the last part of a name.
constexpr std::array<std::string_view, 4> kLongEndings = {".ome.zarr", ".ome.tiff", ".ome.tif",
                                                          ".nii.gz"};

/// Names of the columns. Empty ones at the end of the line, as spreadsheets leave them, are none.
Status TakeColumns(const CsvLine& heading, CohortTable& table) {
  for (const std::string& field : heading.fields) table.columns.emplace_back(TrimmedCell(field));
  while (!table.columns.empty() && table.columns.back().empty()) table.columns.pop_back();
  const auto wrong = [&](std::string_view cause) {
    return WrongLine(table.source, heading.line, cause);
  };
  if (table.columns.size() > kMaxCohortColumns) {
    return wrong(StrCat(table.columns.size(), " columns, more than ", kMaxCohortColumns));
  }
  for (std::size_t i = 0; i < table.columns.size(); ++i) {
    const std::string& name = table.columns[i];
    if (name.empty()) return wrong(StrCat("column ", i + 1, " has no name"));
    if (*table.Column(name) != i) return wrong(StrCat("two columns are named '", name, "'"));
  }
  if (table.Column("path")) return absl::OkStatus();
  const std::string near = Nearest("path", table.columns);
  return wrong(StrCat("no column 'path'", near.empty() ? "" : StrCat(" (is it '", near, "'?)"),
                      "; the first line names the columns"));
}

Status TakeRow(CsvLine&& line, CohortTable& table) {
  CohortRow row;
  row.line = line.line;
  for (const std::string& field : line.fields) row.cells.emplace_back(TrimmedCell(field));
  const auto is_empty = [](const std::string& cell) { return cell.empty(); };
  if (std::all_of(row.cells.begin(), row.cells.end(), is_empty)) return absl::OkStatus();
  for (; row.cells.size() > table.columns.size(); row.cells.pop_back()) {
    if (row.cells.back().empty()) continue;
    return WrongLine(table.source, row.line,
                     StrCat(row.cells.size(), " cells under ", table.columns.size(),
                            " columns; quote a cell that contains the separator"));
  }
  if (row.cells.size() < table.columns.size()) {
    return table.Wrong(
        row, table.columns[row.cells.size()],
        StrCat("the line ends before it, with ", row.cells.size(), " of ", table.columns.size(),
               " cells; write the separator of an empty cell too"));
  }
  const std::string& path = table.Cell(row, "path");
  if (path.empty()) return table.Wrong(row, "path", "it is empty");
  const bool named = table.Column("slide_id").has_value();
  row.slide_id = named ? table.Cell(row, "slide_id") : StemOf(path);
  if (row.slide_id.empty()) return table.Wrong(row, named ? "slide_id" : "path", "it is empty");
  const auto hash_column = table.Column("content_hash");
  if (hash_column) row.cells[*hash_column] = LowerCase(row.cells[*hash_column]);
  const std::string& hash = table.Cell(row, "content_hash");
  if (!hash.empty() && !Digest::FromHex(hash).ok()) {
    return table.Wrong(row, "content_hash",
                       StrCat("'", hash, "' is not a SHA-256 (64 hex digits)"));
  }
  if (table.rows.size() >= kMaxPlanImages) {
    return WrongLine(table.source, row.line, StrCat("more than ", kMaxPlanImages, " rows"));
  }
  table.rows.push_back(std::move(row));
  return absl::OkStatus();
}

Status CheckUnique(const CohortTable& table) {
  std::unordered_map<std::string_view, const CohortRow*> paths, ids;
  for (const CohortRow& row : table.rows) {
    const std::string& path = table.Cell(row, "path");
    const auto [same_path, new_path] = paths.emplace(path, &row);
    if (!new_path) {
      return table.Wrong(row, "path",
                         StrCat("'", path, "' is already in line ", same_path->second->line,
                                " too; a slide has one row"));
    }
    const auto [same_id, new_id] = ids.emplace(row.slide_id, &row);
    if (new_id) continue;
    const bool named = table.Column("slide_id").has_value();
    return table.Wrong(
        row, named ? "slide_id" : "path",
        StrCat("the slide_id '", row.slide_id, "' is that of line ", same_id->second->line, " too",
               named ? "" : "; add a column slide_id that tells them apart"));
  }
  return absl::OkStatus();
}

}  // namespace

std::optional<std::size_t> CohortTable::Column(std::string_view name) const {
  const auto found = std::find(columns.begin(), columns.end(), name);
  if (found == columns.end()) return std::nullopt;
  return static_cast<std::size_t>(found - columns.begin());
}

const std::string& CohortTable::Cell(const CohortRow& row, std::string_view column) const {
  static const std::string kNone;
  const auto at = Column(column);
  return at ? row.cells[*at] : kNone;
}

Status CohortTable::Wrong(const CohortRow& row, std::string_view column,
                          std::string_view cause) const {
  return WrongLine(source, row.line, StrCat("column '", column, "': ", cause));
}

bool NamesTable(std::string_view path) {
  const std::string lower = LowerCase(path);
  return lower.ends_with(".csv") || lower.ends_with(".tsv");
}

std::string StemOf(std::string_view path) {
  while (path.ends_with('/')) path.remove_suffix(1);
  const std::string_view name = path.substr(path.rfind('/') + 1);
  const std::string lower = LowerCase(name);
  for (const std::string_view ending : kLongEndings) {
    if (lower.ends_with(ending)) return std::string(name.substr(0, name.size() - ending.size()));
  }
  const std::size_t dot = name.rfind('.');
  return std::string(name.substr(0, dot == 0 ? name.size() : dot));
}

StatusOr<CohortTable> ParseCohortTable(std::string_view text, std::string_view source) {
  CohortTable table;
  table.source = std::string(source);
  PB_ASSIGN_OR_RETURN(const TableText opened, OpenTableText(text, source));
  const int lines_before = opened.lines_before;
  CsvLines lines = ParseCsvLines(opened.text, opened.separator);
  for (CsvLine& line : lines.rows) line.line += lines_before;
  if (lines.open_quote != 0) {
    return WrongLine(source, lines.open_quote + lines_before, "a quote that nothing closes");
  }
  if (lines.rows.empty()) return WrongLine(source, 1, "the table is empty");
  PB_RETURN_IF_ERROR(TakeColumns(lines.rows.front(), table));
  for (std::size_t i = 1; i < lines.rows.size(); ++i) {
    PB_RETURN_IF_ERROR(TakeRow(std::move(lines.rows[i]), table));
  }
  if (table.rows.empty()) return WrongLine(source, lines.rows[0].line, "the table has no rows");
  PB_RETURN_IF_ERROR(CheckUnique(table));
  return table;
}

StatusOr<std::string> ModalityOf(const CohortTable& table, const CohortRow& row) {
  const std::string& cell = table.Cell(row, kModalityColumn);
  if (cell.empty()) return std::string();
  const auto modality = ParseModality(cell);
  if (!modality.ok()) return table.Wrong(row, kModalityColumn, MessageOf(modality.status()));
  return modality->ToString();
}

StatusOr<SlideChoice> SlideChoiceOf(const CohortTable& table, const CohortRow& row) {
  const auto focal_plane = ParseFocalPlane(table.Cell(row, kFocalPlaneColumn));
  if (!focal_plane.ok()) {
    return table.Wrong(row, kFocalPlaneColumn, MessageOf(focal_plane.status()));
  }
  const std::string& path = table.Cell(row, kOpticalPathColumn);
  const Status named = path.empty() ? absl::OkStatus() : CheckChannelName(path);
  if (!named.ok()) return table.Wrong(row, kOpticalPathColumn, MessageOf(named));
  return SlideChoice{*focal_plane, path};
}

}  // namespace patchbay::plan
