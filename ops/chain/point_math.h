// The formula of each point-wise step, for one value or one pixel. Templates; include after the
// target pragma of a variant. A part of chain.
#pragma once

#include "ops/chain/point_steps.h"
#include "ops/color_jitter/color_jitter_math.h"
#include "ops/colour/od_map_math.h"
#include "ops/gamma/gamma_math.h"
#include "ops/intensity/tone_math.h"
#include "ops/stain_normalize/reinhard_math.h"

namespace patchbay::ops {

// How each step changes a pixel of three channels, or a value. Icc and noise are not here: the
// first has a loop of its own, the second needs the place of the value.

template <typename V>
PB_LANE_CODE void Apply(const LabMap& map, V (&rgb)[3]) {
  MapLab(map, rgb);
}
template <typename V>
PB_LANE_CODE void Apply(const OdMap& map, V (&rgb)[3]) {
  MapOd(map, rgb);
}
template <typename V>
PB_LANE_CODE void Apply(const JitterStep& step, V (&rgb)[3]) {
  const V to_one = V::All(1.0f / step.white), back = V::All(step.white);
  for (V& x : rgb) x = x * to_one;
  for (int k = step.first; k < step.last; ++k) {
    JitterColor(step.jitter, step.jitter.order[k], step.mean, rgb);
  }
  for (V& x : rgb) x = x * back;
}
template <typename V>
PB_LANE_CODE V Applied(const WindowStep& step, V x) {
  return Windowed(step, x);
}
template <typename V>
PB_LANE_CODE V Applied(const ClippedLine& line, V x) {
  return Clipped(line, x);
}
template <typename V>
PB_LANE_CODE V Applied(const ValueLine& line, V x) {
  return Along(line, x);
}
template <typename V>
PB_LANE_CODE V Applied(const LineWithin& line, V x) {
  return Lined(line, x);
}
template <typename V>
PB_LANE_CODE V Applied(const PowerCurve& curve, V x) {
  return Curved(curve, x);
}
/// `V` of one value.
template <typename V>
PB_LANE_CODE V Applied(const CastStep& step, V x) {
  return {CastValue(CastBits(x.v, step.to), step.to)};
}

/// The forms in double.
PB_LANE_CODE double Exactly(const NormalizeStep& step, double x) {
  return NormalizeValue(x, step.channel.scale, step.channel.mean, step.channel.std);
}
PB_LANE_CODE double Exactly(const CastStep& step, double x) {
  return CastValue(CastBits(static_cast<float>(x), step.to), step.to);
}

/// A step of any number, of a type that has a form in double.
PB_LANE_CODE double ExactOf(const PointStep& step, double x) {
  VisitStep(step, [&x](const auto& one) {
    if constexpr (IsByValue<std::decay_t<decltype(one)>>::value) x = Exactly(one, x);
  });
  return x;
}

}  // namespace patchbay::ops
