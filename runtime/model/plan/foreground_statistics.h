// The statistics behind ct_normalize: percentiles, mean and deviation of the foreground of a
// training set.
#pragma once

#include <cstdint>
#include <optional>

#include "runtime/model/ops/op_list.h"
#include "runtime/model/plan/class_histograms.h"

namespace patchbay::plan {

/// The key of these statistics in a lock: {"lower", "upper", "mean", "std", ..., "window"}.
inline constexpr std::string_view kCtForeground = "ct_foreground";

struct ForegroundStatistics {
  double lower = 0, upper = 0;  ///< percentiles 0.5 and 99.5, between two values on the line
  double mean = 0, std = 0;     ///< statistics of all values, not clipped; population deviation
  std::uint64_t voxels = 0;
};

/// Statistics of the counted voxels, in Hounsfield units or after `window`. Exact: equal to the
/// statistics of the single voxels. nullopt without voxels.
std::optional<ForegroundStatistics> StatisticsOf(const HuHistogram& counts,
                                                 const std::optional<ValueWindow>& window);

}  // namespace patchbay::plan
