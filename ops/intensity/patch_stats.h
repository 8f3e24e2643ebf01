// Sums over a patch, for contrast and gamma. Every device adds in one order:
// column j of a row to lane j mod 16, the lanes of a row, the rows of a slice, the slices.
#pragma once

#include <cmath>
#include <limits>

#include "runtime/core/random.h"

namespace patchbay::ops {

inline constexpr int kSumLanes = 16;
inline constexpr float kNoLimit = std::numeric_limits<float>::infinity();
inline constexpr double kLeastRange = 1e-7;  ///< least range or deviation to divide by

/// Sums of the values of a patch, each less a shift.
struct PatchSums {
  double sum = 0, squares = 0;
  float least = 0, most = 0;  ///< range of the values themselves
};

/// Adds the next part.
PB_HOST_DEVICE inline void Join(PatchSums& total, const PatchSums& part) {
  total.sum += part.sum;
  total.squares += part.squares;
  total.least = part.least < total.least ? part.least : total.least;
  total.most = part.most > total.most ? part.most : total.most;
}

/// A row, from kSumLanes lanes of each.
PB_HOST_DEVICE inline PatchSums JoinedLanes(const float* sum, const float* squares,
                                            const float* least, const float* most) {
  PatchSums row{double{sum[0]}, double{squares[0]}, least[0], most[0]};
  for (int k = 1; k < kSumLanes; ++k) {
    Join(row, {double{sum[k]}, double{squares[k]}, least[k], most[k]});
  }
  return row;
}

struct PatchStats {
  double mean = 0, std = 0;
  float least = 0, most = 0;
};

/// value -> value slope + offset, within least and most.
struct LineWithin {
  float slope = 1, offset = 0, least = 0, most = 0;
};

/// A line that clips nothing.
PB_HOST_DEVICE inline LineWithin FreeLine(float slope, float offset) {
  return {slope, offset, -kNoLimit, kNoLimit};
}

/// The statistics of `n` values from their sums. Multiply::Of rounds a product before it is added
/// to something (device_lanes.cuh).
template <typename Multiply>
PB_HOST_DEVICE inline PatchStats StatsOf(const PatchSums& sums, float shift, double n) {
  const double mean = sums.sum / n;
  const double spread = sums.squares - Multiply::Of(sums.sum, mean);
  const double squares = spread > 0 ? spread : 0;
  return {double{shift} + mean, n > 1 ? sqrt(squares / (n - 1)) : 0, sums.least, sums.most};
}

}  // namespace patchbay::ops
