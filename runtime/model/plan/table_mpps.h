// The column `mpp` of a table of images: what the user says of how large the pixels are.
#pragma once

#include <optional>
#include <vector>

#include "runtime/core/status.h"
#include "runtime/model/plan/cohort.h"

namespace patchbay::plan {

inline constexpr char kMppColumn[] = "mpp";

/// The um/px of each of `rows` in the column, nullopt where the cell is empty; nothing at all for a
/// table without one. InvalidArgument naming the row of a cell that is not a positive number.
StatusOr<std::vector<std::optional<double>>> MppsOf(const CohortTable& table,
                                                    const CohortRows& rows);

}  // namespace patchbay::plan
