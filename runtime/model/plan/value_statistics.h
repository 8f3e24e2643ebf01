// Percentiles, mean and deviation of the values of an image, of some of its voxels, or of the
// foreground of a training set.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "runtime/core/fields.h"
#include "runtime/core/status.h"
#include "runtime/model/ops/op_list.h"
#include "runtime/model/plan/class_histograms.h"

namespace patchbay::plan {

/// The key of ct_normalize's statistics in a lock: {"lower", "upper", "mean", "std", ...,
/// "window"}.
inline constexpr std::string_view kCtForeground = "ct_foreground";

struct ValueStatistics {
  double lower = 0, upper = 0;  ///< percentiles, between two values on the line
  double mean = 0, std = 0;     ///< statistics of all values, not clipped; population deviation
  std::uint64_t voxels = 0;
};

/// Per cent of the voxels below `lower` and `upper`: nnU-Net's.
inline constexpr double kForegroundPercentiles[] = {0.5, 99.5};

/// Statistics of the counted voxels, as they are or after `window`. Exact: equal to the statistics
/// of the single voxels. nullopt without voxels.
std::optional<ValueStatistics> StatisticsOf(
    const HuHistogram& counts, const std::optional<ValueWindow>& window,
    std::span<const double, 2> percentiles = kForegroundPercentiles);

/// Mean and population deviation of some voxels.
struct Moments {
  std::uint64_t voxels = 0;
  double mean = 0, std = 0;

  static Moments Of(std::span<const float> values);
  /// Adds other voxels.
  void Merge(const Moments& other);
  static constexpr auto Fields() {
    return AsFullObject(Field("voxels", &Moments::voxels), Field("mean", &Moments::mean),
                        Field("std", &Moments::std));
  }
};

/// Statistics of a volume of float32, as ingest stores them.
struct FloatStatistics {
  Moments image, nonzero;
  /// At 0, 0.1, ..., 100 % of the image: float32, the low byte first, in base64.
  std::string percentiles;

  /// Requires finite values that rise.
  static FloatStatistics Of(std::span<const float> values);
  /// InvalidArgument for a percentage that is not a whole number of tenths.
  StatusOr<double> Percentile(double percent) const;
  static constexpr auto Fields() {
    using T = FloatStatistics;
    return AsFullObject(Field("image", &T::image), Field("nonzero", &T::nonzero),
                        Field("percentiles", &T::percentiles));
  }
};

}  // namespace patchbay::plan
