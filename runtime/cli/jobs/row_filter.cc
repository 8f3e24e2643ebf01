#include "runtime/cli/jobs/row_filter.h"

#include <charconv>
#include <cmath>
#include <optional>

#include "runtime/core/strings.h"

namespace patchbay::cli {
namespace {

std::optional<double> NumberOf(const std::string& text) {
  double number = 0;
  const char* end = text.data() + text.size();
  const auto [after, error] = std::from_chars(text.data(), end, number);
  const bool is_number = error == std::errc() && after == end && std::isfinite(number);
  return is_number ? std::optional(number) : std::nullopt;
}

bool Holds(double cell, const std::string& comparison, double value) {
  if (comparison == "<") return cell < value;
  if (comparison == "<=") return cell <= value;
  return comparison == ">" ? cell > value : cell >= value;
}

bool ComparesText(const std::string& comparison) { return comparison == "=" || comparison == "!="; }

}  // namespace

StatusOr<RowFilter> RowFilter::Parse(const std::vector<std::string>& conditions) {
  RowFilter filter;
  for (const std::string& text : conditions) {
    const std::size_t at = text.find_first_of("<>=!");
    const std::size_t end = at == std::string::npos ? at : text.find_first_not_of("<>=!", at);
    Condition one;
    if (at != std::string::npos && at > 0 && end != std::string::npos) {
      one = {text.substr(0, at), text.substr(at, end - at), text.substr(end), 0};
    }
    const bool is_known = ComparesText(one.comparison) || one.comparison == "<" ||
                          one.comparison == "<=" || one.comparison == ">" || one.comparison == ">=";
    const std::optional<double> number = NumberOf(one.value);
    if (!is_known || (!ComparesText(one.comparison) && !number)) {
      return InvalidArgument("--where '", text,
                             "': expected a column, a comparison (=, !=, <, <=, >, >=) and a ",
                             "value, such as thickness_mm<=3");
    }
    one.number = number.value_or(0);
    filter.conditions_.push_back(std::move(one));
  }
  return filter;
}

StatusOr<bool> RowFilter::Takes(const plan::CohortTable& table, const plan::CohortRow& row) const {
  const std::string& use = table.Cell(row, "use");
  if (!use.empty() && use != "0" && use != "1") {
    return table.Wrong(row, "use", StrCat("'", use, "': 1 takes the row, 0 leaves it out"));
  }
  bool takes = use != "0";
  for (const Condition& one : conditions_) {
    if (!table.Column(one.column)) {
      return InvalidArgument(table.source, ": no column '", one.column, "', which --where names");
    }
    const std::string& cell = table.Cell(row, one.column);
    if (ComparesText(one.comparison)) {
      takes = takes && (cell == one.value) == (one.comparison == "=");
      continue;
    }
    const std::optional<double> number = NumberOf(cell);
    if (!number && !cell.empty()) {
      return table.Wrong(row, one.column,
                         StrCat("'", cell, "': not a number, but --where compares it with one"));
    }
    takes = takes && number && Holds(*number, one.comparison, one.number);
  }
  return takes;
}

}  // namespace patchbay::cli
