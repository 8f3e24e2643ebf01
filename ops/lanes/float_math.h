// log2 and exp2 in float, from additions, products and fused products alone: the same bits at any
// width and on any device. Templates only; include after the target pragma of a variant.
#pragma once

#include "ops/lanes/lane_code.h"

namespace patchbay::ops {

/// log2 of positive normal numbers; absolute error below 2e-7 near 1, relative error below 3e-7
/// elsewhere.
template <typename V>
PB_LANE_CODE V BinaryLog(V x) {
  using Whole = typename V::Whole;
  const Whole bits = Whole::BitsOf(x);
  const Whole exponent = (bits - Whole::All(0x3F3504F3u)).RightSigned(23);  // from sqrt(1/2) on
  const V t = (bits - exponent.Left(23)).AsBits() - V::All(1.0f);
  V p = V::All(0.12541225f);
  p = FusedAdd(p, t, V::All(-0.21030334f));
  p = FusedAdd(p, t, V::All(0.21737938f));
  p = FusedAdd(p, t, V::All(-0.23851945f));
  p = FusedAdd(p, t, V::All(0.28765666f));
  p = FusedAdd(p, t, V::All(-0.36072120f));
  p = FusedAdd(p, t, V::All(0.48092252f));
  p = FusedAdd(p, t, V::All(-0.72134715f));
  p = FusedAdd(p, t, V::All(1.4426949f));
  return FusedAdd(t, p, exponent.ToFloat());
}

/// Relative error below 1e-7 within -126 .. 126; arguments are clamped to this range.
template <typename V>
PB_LANE_CODE V BinaryPower(V x) {
  using Whole = typename V::Whole;
  x = Min(Max(x, V::All(-126.0f)), V::All(126.0f));
  const Whole whole = Whole::Nearest(x);
  const V f = x - whole.ToFloat();
  V p = V::All(0.00015345812f);
  p = FusedAdd(p, f, V::All(0.00133999309f));
  p = FusedAdd(p, f, V::All(0.00961848907f));
  p = FusedAdd(p, f, V::All(0.0555032864f));
  p = FusedAdd(p, f, V::All(0.240226462f));
  p = FusedAdd(p, f, V::All(0.693147182f));
  p = FusedAdd(p, f, V::All(1.0f));
  return (Whole::BitsOf(p) + whole.Left(23)).AsBits();
}

}  // namespace patchbay::ops
