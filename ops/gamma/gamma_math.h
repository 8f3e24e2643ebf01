// gamma: the power of a value. Templates; include after the target pragma of a variant.
#pragma once

#include "ops/gamma/power_curve.h"
#include "ops/lanes/float_math.h"

namespace patchbay::ops {

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

}  // namespace patchbay::ops
