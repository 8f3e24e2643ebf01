#include "runtime/model/plan/cohort.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <map>
#include <optional>
#include <set>

#include "runtime/core/counted.h"
#include "runtime/core/strings.h"
#include "runtime/format/csv/table_text.h"
#include "runtime/model/ops/stain_references.h"
#include "runtime/model/plan/class_table.h"

namespace patchbay::plan {
namespace {

constexpr std::size_t kMaxValuesNamed = 10;
constexpr char kPatientColumn[] = "patient_id";

Status WrongKey(std::string_view key, std::string_view cause) {
  return InvalidArgument("key '", key, "': ", cause);
}

std::string Hint(const std::string& word, const std::vector<std::string>& candidates) {
  const std::string near = Nearest(word, candidates);
  return near.empty() ? "" : StrCat(" (did you mean '", near, "'?)");
}

StatusOr<std::size_t> ColumnOf(const CohortTable& table, const std::string& name,
                               std::string_view key) {
  if (const auto column = table.Column(name)) return *column;
  return WrongKey(key,
                  StrCat(table.source, " has no column '", name, "'", Hint(name, table.columns)));
}

StatusOr<CohortRows> RowsWhere(const CohortTable& table, const RunConfig& config) {
  CohortRows rows(table.rows.size());
  for (std::size_t i = 0; i < rows.size(); ++i) rows[i] = i;
  for (const auto& [name, values] : config.where) {
    PB_ASSIGN_OR_RETURN(const std::size_t column, ColumnOf(table, name, StrCat("where.", name)));
    const auto is_out = [&, &wanted = values](std::size_t row) {
      const std::string& cell = table.rows[row].cells[column];
      return std::find(wanted.begin(), wanted.end(), cell) == wanted.end();
    };
    rows.erase(std::remove_if(rows.begin(), rows.end(), is_out), rows.end());
    if (rows.empty()) {
      return WrongKey(StrCat("where.", name), StrCat("no row of ", table.source, " is left with '",
                                                     StrJoin(values, "', '"), "'"));
    }
  }
  return rows;
}

/// Splits that differ only in case are one that is misspelt; kAllSplits is taken.
Status CheckSpelling(const CohortTable& table, const RunConfig& config, const CohortRows& rows,
                     std::size_t column) {
  std::map<std::string, const CohortRow*> seen;
  for (const std::size_t number : rows) {
    const CohortRow& row = table.rows[number];
    const std::string& split = row.cells[column];
    if (split.empty()) continue;
    const std::string lower = LowerCase(split);
    if (lower == kAllSplits) {
      return table.Wrong(row, config.split_column,
                         StrCat("'", split,
                                "' stands for every row of the table where a split is "
                                "asked for; give the split another name"));
    }
    const CohortRow* first = seen.emplace(lower, &row).first->second;
    if (first->cells[column] == split) continue;
    return table.Wrong(row, config.split_column,
                       StrCat("the split '", split, "' and '", first->cells[column], "' in line ",
                              first->line, " differ only in case; spell them alike"));
  }
  return absl::OkStatus();
}

std::vector<std::string> SplitsOf(const CohortTable& table, const CohortRows& rows,
                                  std::size_t column) {
  std::set<std::string> values;
  for (const std::size_t row : rows) values.insert(table.rows[row].cells[column]);
  values.erase("");
  return {values.begin(), values.end()};
}

std::string Named(const std::vector<std::string>& values) {
  std::vector<std::string> first(
      values.begin(),
      values.begin() + static_cast<std::ptrdiff_t>(std::min(values.size(), kMaxValuesNamed)));
  return StrCat(StrJoin(first, ", "), values.size() > first.size() ? ", ..." : "");
}

/// No value of `column` in the rows of two splits.
Status CheckApart(const CohortTable& table, const CohortRows& rows, std::size_t split_column,
                  std::string_view column, std::string_view what) {
  const auto at = table.Column(column);
  if (!at) return absl::OkStatus();
  std::map<std::string_view, const CohortRow*> seen;
  for (const std::size_t number : rows) {
    const CohortRow& row = table.rows[number];
    const std::string &value = row.cells[*at], &split = row.cells[split_column];
    if (value.empty() || split.empty()) continue;
    const CohortRow* first = seen.emplace(value, &row).first->second;
    const std::string& other = first->cells[split_column];
    if (other == split) continue;
    return table.Wrong(row, column,
                       StrCat(what, " '", value, "' is in the split '", split, "' here and in '",
                              other, "' in line ", first->line, ", so that one split knows the ",
                              "other; put both rows into one"));
  }
  return absl::OkStatus();
}

/// A column that may be patient_id under another name; "" for none.
std::string PatientLike(const CohortTable& table) {
  if (std::string near = Nearest(kPatientColumn, table.columns); !near.empty()) return near;
  for (const std::string& name : table.columns) {
    const std::string lower = LowerCase(name);
    if (lower.find("patient") != std::string::npos || lower.find("subject") != std::string::npos) {
      return name;
    }
  }
  return "";
}

/// The first two ids of two splits that differ only in case.
void AddCaseNotice(const CohortTable& table, const RunConfig& config, const CohortRows& rows,
                   SplitCensus& census) {
  std::map<std::string, const CohortRow*> seen;
  for (const std::size_t number : rows) {
    const CohortRow& row = table.rows[number];
    const std::string &id = table.Cell(row, kPatientColumn),
                      &split = table.Cell(row, config.split_column);
    if (id.empty() || split.empty()) continue;
    const CohortRow* first = seen.emplace(LowerCase(id), &row).first->second;
    const std::string &other = table.Cell(*first, kPatientColumn),
                      &other_split = table.Cell(*first, config.split_column);
    if (other == id || other_split == split) continue;
    census.notices.push_back(StrCat(
        table.source, ":", row.line, ": column '", kPatientColumn, "': '", id, "' in the split '",
        split, "' and '", other, "' in '", other_split, "' in line ", first->line,
        " differ only in case and count as two patients; spell them alike if they are one"));
    return;
  }
}

/// Adds notices on patients that could not be compared.
void AddPatientNotices(const CohortTable& table, const RunConfig& config, const CohortRows& rows,
                       SplitCensus& census) {
  const auto say = [&](std::string_view what) {
    census.notices.push_back(
        StrCat(table.source, ": ", what, ", so patients may be in several splits"));
  };
  if (!table.Column(kPatientColumn)) {
    const std::string near = PatientLike(table);
    say(StrCat("no column '", kPatientColumn, "'",
               near.empty() ? "" : StrCat(" (is it '", near, "'?)"), ": none were compared"));
  } else if (census.with_patient == 0) {
    say(StrCat("column '", kPatientColumn, "' is empty: none were compared"));
  } else if (census.with_patient < census.rows) {
    say(StrCat("column '", kPatientColumn, "' is empty in ", census.rows - census.with_patient,
               " of ", census.rows, " rows: these were not compared"));
  }
  AddCaseNotice(table, config, rows, census);
}

/// Checks that a slide has only one of the selected rows.
Status CheckContents(const CohortTable& table, const CohortRows& rows) {
  const auto at = table.Column("content_hash");
  if (!at) return absl::OkStatus();
  std::map<std::string_view, const CohortRow*> seen;
  for (const std::size_t number : rows) {
    const CohortRow& row = table.rows[number];
    if (row.cells[*at].empty()) continue;
    const auto [first, is_new] = seen.emplace(row.cells[*at], &row);
    if (is_new) continue;
    return table.Wrong(
        row, "content_hash",
        StrCat("the content is that of line ", first->second->line, " too; a slide has one row"));
  }
  return absl::OkStatus();
}

/// "3", "-1" and "3.00".
std::optional<std::int64_t> IntegerOf(std::string_view cell) {
  const std::size_t dot = cell.find('.');
  if (dot != std::string_view::npos) {
    const std::string_view zeros = cell.substr(dot + 1);
    if (zeros.empty() || zeros.find_first_not_of('0') != std::string_view::npos) return {};
    cell = cell.substr(0, dot);
  }
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(cell.data(), cell.data() + cell.size(), value);
  if (error != std::errc() || end != cell.data() + cell.size()) return {};
  return value;
}

StatusOr<std::size_t> CheckSplits(const CohortTable& table, const RunConfig& config,
                                  const CohortRows& rows, std::vector<std::string>& splits) {
  PB_ASSIGN_OR_RETURN(const std::size_t column,
                      ColumnOf(table, config.split_column, "split_column"));
  PB_RETURN_IF_ERROR(CheckSpelling(table, config, rows, column));
  splits = SplitsOf(table, rows, column);
  if (splits.size() < 2) {
    return WrongKey("split_column",
                    StrCat("column '", config.split_column, "' of ", table.source,
                           splits.empty() ? " is empty" : StrCat(" has one value, ", splits[0]),
                           ": these are not splits"));
  }
  for (const auto& [name, overrides] : config.splits.items()) {
    if (std::find(splits.begin(), splits.end(), name) != splits.end()) continue;
    return WrongKey(StrCat("splits.", name),
                    StrCat("column '", config.split_column, "' of ", table.source, " has ",
                           Named(splits), Hint(name, splits)));
  }
  PB_RETURN_IF_ERROR(CheckApart(table, rows, column, kPatientColumn, "the patient"));
  PB_RETURN_IF_ERROR(CheckApart(table, rows, column, "content_hash", "the content"));
  return column;
}

}  // namespace

StatusOr<CohortRows> SelectRows(const CohortTable& table, const RunConfig& config,
                                std::string_view split) {
  PB_ASSIGN_OR_RETURN(CohortRows rows, RowsWhere(table, config));
  if (config.split_column.empty()) {
    PB_RETURN_IF_ERROR(CheckContents(table, rows));
    if (split.empty()) return rows;
    return InvalidArgument("split '", split, "': the config has no split_column");
  }
  std::vector<std::string> splits;
  PB_ASSIGN_OR_RETURN(const std::size_t column, CheckSplits(table, config, rows, splits));
  PB_RETURN_IF_ERROR(CheckContents(table, rows));
  if (split.empty() || split == kAllSplits) return rows;
  if (std::find(splits.begin(), splits.end(), split) == splits.end()) {
    return InvalidArgument("split '", split, "': column '", config.split_column, "' of ",
                           table.source, " has ", Named(splits), Hint(std::string(split), splits));
  }
  std::erase_if(rows, [&](std::size_t row) { return table.rows[row].cells[column] != split; });
  return rows;
}

StatusOr<std::size_t> CountRows(const CohortTable& table, const RunConfig& config) {
  PB_ASSIGN_OR_RETURN(const CohortRows rows, RowsWhere(table, config));
  return rows.size();
}

SplitCensus CensusOf(const CohortTable& table, const RunConfig& config, const CohortRows& rows) {
  SplitCensus census;
  const CohortRow* first_without = nullptr;
  for (const std::size_t number : rows) {
    const CohortRow& row = table.rows[number];
    const std::string& split = table.Cell(row, config.split_column);
    if (split.empty()) {
      if (census.without_split++ == 0) first_without = &row;
      continue;
    }
    ++census.rows;
    census.with_patient += table.Cell(row, kPatientColumn).empty() ? 0 : 1;
    SplitCensus::Split& of = census.splits[split];
    if (of.rows++ == 0) of.role = RoleOf(config, split);
  }
  if (first_without != nullptr) {
    const bool is_one = census.without_split == 1;
    census.notices.push_back(StrCat(
        table.source, ":", first_without->line, ": column '", config.split_column, "': it is empty",
        is_one ? "" : StrCat(", as in ", census.without_split - 1, " more"),
        is_one ? ": the row is" : ": the rows are", " in no split; only `all` has ",
        is_one ? "it" : "them"));
  }
  AddPatientNotices(table, config, rows, census);
  return census;
}

StatusOr<std::vector<std::vector<std::uint32_t>>> GroupsOf(const CohortTable& table,
                                                           const RunConfig& config,
                                                           const CohortRows& rows) {
  std::vector<std::vector<std::uint32_t>> groups(rows.size());
  for (const std::string& name : config.weight_by) {
    PB_ASSIGN_OR_RETURN(const std::size_t column, ColumnOf(table, name, "sampling.weight_by"));
    std::map<std::vector<std::uint32_t>, std::map<std::string_view, std::uint32_t>> seen;
    for (std::size_t i = 0; i < rows.size(); ++i) {
      const CohortRow& row = table.rows[rows[i]];
      const std::string& cell = row.cells[column];
      if (cell.empty()) return table.Wrong(row, name, "it is empty; sampling.weight_by needs it");
      auto& values = seen[groups[i]];
      groups[i].push_back(
          values.emplace(cell, static_cast<std::uint32_t>(values.size())).first->second);
    }
  }
  return groups;
}

StatusOr<std::vector<std::int64_t>> LabelsOf(const CohortTable& table, const RunConfig& config,
                                             const CohortRows& rows) {
  constexpr std::string_view kKey = "labels.label.column";
  const std::string& name = config.labels.column;
  PB_ASSIGN_OR_RETURN(const std::size_t column, ColumnOf(table, name, kKey));
  std::vector<std::int64_t> labels;
  for (const std::size_t number : rows) {
    const CohortRow& row = table.rows[number];
    const std::string& cell = row.cells[column];
    const auto value = cell.empty() ? std::int64_t{kIgnoreClass} : IntegerOf(cell);
    if (!value) {
      return table.Wrong(row, name,
                         StrCat("'", cell, "' is not an integer; ", kKey,
                                " takes the number of a class, or nothing"));
    }
    labels.push_back(*value);
  }
  const auto has_label = [&](const CohortRow& row) { return !row.cells[column].empty(); };
  if (std::any_of(table.rows.begin(), table.rows.end(), has_label)) return labels;
  return WrongKey(kKey, StrCat("column '", name, "' of ", table.source, " is empty"));
}

StatusOr<RowScanners> ScannersOf(const CohortTable& table, const RunConfig& config,
                                 const CohortRows& rows) {
  const auto normalize = *FindStainReferences(config);
  const std::string key = FindStainOp(config).key;
  const std::string& name = normalize.scanner_column;
  PB_ASSIGN_OR_RETURN(const std::size_t column,
                      ColumnOf(table, name, StrCat(key, ".scanner_column")));
  std::vector<std::string> listed;
  for (const Json* const map : {&normalize.scanners, &normalize.scanner_fits}) {
    for (const auto& [scanner, reference] : map->items()) listed.push_back(scanner);
  }
  const auto is_listed = [&](const std::string& scanner) {
    return std::find(listed.begin(), listed.end(), scanner) != listed.end();
  };
  RowScanners found;
  for (const std::size_t number : rows) {
    const CohortRow& row = table.rows[number];
    const std::string& cell = row.cells[column];
    const std::string scanner = is_listed(cell) ? cell : std::string(kOtherScanners);
    if (!is_listed(scanner)) {
      const std::string what = cell.empty()
                                   ? std::string("no scanner is named")
                                   : StrCat("the scanner '", cell, "' is not in ", key, ".scanners",
                                            Hint(cell, listed), "; list it there");
      return table.Wrong(row, name, StrCat(what, ", or give `", kOtherScanners, "` a reference"));
    }
    const auto entry = std::find(found.names.begin(), found.names.end(), scanner);
    found.of_rows.push_back(static_cast<std::uint32_t>(entry - found.names.begin()));
    if (entry == found.names.end()) found.names.push_back(scanner);
  }
  return found;
}

StatusOr<std::vector<std::optional<double>>> MppsOf(const CohortTable& table,
                                                    const CohortRows& rows) {
  std::vector<std::optional<double>> mpps;
  const auto column = table.Column(kMppColumn);
  if (!column) return mpps;
  for (const std::size_t number : rows) {
    const CohortRow& row = table.rows[number];
    const std::string& cell = row.cells[*column];
    mpps.emplace_back();
    if (cell.empty()) continue;
    double value = 0;
    const auto [end, error] = std::from_chars(cell.data(), cell.data() + cell.size(), value);
    const bool is_number = error == std::errc() && end == cell.data() + cell.size();
    if (!is_number || !std::isfinite(value) || value <= 0) {
      return table.Wrong(row, kMppColumn,
                         StrCat("'", cell, "' is not a number of um per pixel, as 0.25 is; leave ",
                                "the cell empty where the file is right"));
    }
    mpps.back() = value;
  }
  return mpps;
}

StatusOr<std::vector<SlideChoice>> SlideChoicesOf(const CohortTable& table,
                                                  const CohortRows& rows) {
  std::vector<SlideChoice> choices;
  for (const std::size_t number : rows) {
    PB_ASSIGN_OR_RETURN(choices.emplace_back(), SlideChoiceOf(table, table.rows[number]));
  }
  return choices;
}

}  // namespace patchbay::plan
