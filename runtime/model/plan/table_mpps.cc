#include "runtime/model/plan/table_mpps.h"

#include <charconv>
#include <cmath>

#include "runtime/core/strings.h"

namespace patchbay::plan {

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

}  // namespace patchbay::plan
