// gamma: the power of a value, the curve of a patch, and the line that restores its statistics.
// Templates; include after the target pragma of a variant.
#pragma once

#include "ops/intensity/patch_stats.h"
#include "ops/lanes/float_math.h"
#include "ops/steps/step_forms.h"
#include "runtime/core/channels.h"

namespace patchbay::ops {

/// ((x - least) inverse)^exponent range + least.
struct PowerCurve {
  float least = 0, inverse = 1, exponent = 1, range = 1;
};

/// x^exponent of numbers from 0 on; below 2^-126 as that.
template <typename V>
PB_LANE_CODE V Powered(V x, V exponent) {
  return BinaryPower(exponent * BinaryLog(Max(x, V::All(0x1p-126f))));
}

template <typename V>
PB_LANE_CODE V Applied(const PowerCurve& curve, V x) {
  const V part = (x - V::All(curve.least)) * V::All(curve.inverse);
  return FusedAdd(Powered(part, V::All(curve.exponent)), V::All(curve.range), V::All(curve.least));
}

/// The curve of a channel follows from its range.
struct GammaStep {
  static constexpr WholeForm kForm = WholeForm::kCurve;
  using Curve = PowerCurve;
  float exponent[kMaxChannels] = {};
  bool retain_stats = false, invert = false;

  PB_HOST_DEVICE PowerCurve CurveOf(const PatchStats& stats, int c) const {
    const double range = double{stats.most} - double{stats.least};
    return {stats.least, static_cast<float>(1 / (range > kLeastRange ? range : kLeastRange)),
            exponent[c], static_cast<float>(range)};
  }
  /// Back to the mean and the deviation of before, and to the sign.
  template <typename Multiply>
  PB_HOST_DEVICE LineWithin LineAfter(const PatchStats& before, const PatchStats& after) const {
    const double slope = before.std / (after.std > kLeastRange ? after.std : kLeastRange);
    const double offset = before.mean - Multiply::Of(after.mean, slope);
    const float sign = invert ? -1.0f : 1.0f;
    return FreeLine(sign * static_cast<float>(slope), sign * static_cast<float>(offset));
  }
};

}  // namespace patchbay::ops
