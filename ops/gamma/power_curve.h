// gamma: the curve of a patch and the line that restores its statistics. Host and device.
#pragma once

#include "ops/intensity/patch_stats.h"

namespace patchbay::ops {

/// gamma: ((x - least) inverse)^exponent range + least.
struct PowerCurve {
  float least = 0, inverse = 1, exponent = 1, range = 1;
};

/// A step of the chain: the curve follows from the patch's range.
struct GammaStep {
  double exponent = 1;
  bool retain_stats = false, invert = false;
};

PB_HOST_DEVICE inline PowerCurve CurveOf(const PatchStats& stats, float exponent) {
  const double range = double{stats.most} - double{stats.least};
  return {stats.least, static_cast<float>(1 / (range > kLeastRange ? range : kLeastRange)),
          exponent, static_cast<float>(range)};
}

/// Back to the mean and the deviation of before; `sign` -1 where the values were inverted.
template <typename Multiply>
PB_HOST_DEVICE inline LineWithin RetainingLine(const PatchStats& before, const PatchStats& after,
                                               float sign) {
  const double slope = before.std / (after.std > kLeastRange ? after.std : kLeastRange);
  const double offset = before.mean - Multiply::Of(after.mean, slope);
  return FreeLine(sign * static_cast<float>(slope), sign * static_cast<float>(offset));
}

}  // namespace patchbay::ops
