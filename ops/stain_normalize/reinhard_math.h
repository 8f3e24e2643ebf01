// stain_normalize: reinhard, the formula: a line for each of L*, a* and b* of tissue; other pixels
// are unchanged. Templates; include after the target pragma of a variant.
#pragma once

#include "ops/lanes/float_math.h"
#include "ops/steps/step_forms.h"

namespace patchbay::plan {
struct ReinhardFit;
}

namespace patchbay::ops {

/// L*, a* and b* (116 f1 - 16, 500 (f0 - f1), 200 (f1 - f2) of the curve
/// f) become scale times themselves plus offset, both in units of the curve.
struct LabMap {
  static constexpr StepForm kForm = StepForm::kRgb;
  float to_xyz[3][3] = {};  ///< matrix from linear red, green, blue; white is 1, 1, 1
  float to_rgb[3][3] = {};  ///< and back
  float scale[3] = {1, 1, 1}, offset[3] = {0, 0, 0};
  float to_one = 1.0f / 255, white = 255;  ///< the largest value, and the factor that maps it to 1
  float least_background = 170;            ///< pixels none of whose values is below it stay
};

/// Maps the mean and deviation of an image's tissue in L*a*b* to those of the reference. Tissue is
/// defined as in the fit (above plan::kStainTissueOd in any channel); other pixels are unchanged.
/// `white` is the largest value of the source's type.
LabMap LabMapOf(const plan::ReinhardFit& image, const plan::ReinhardFit& reference, double white);

template <typename V>
PB_LANE_CODE V WhereAtMost(V a, V b, V then, V otherwise) {
  return WhereEqual(Min(a, b), a, then, otherwise);
}

/// x to a power, x from 0 on; tiny ones count as the least that has a logarithm here.
template <typename V>
PB_LANE_CODE V PositivePower(V x, float power) {
  return BinaryPower(V::All(power) * BinaryLog(Max(x, V::All(1e-30f))));
}

/// sRGB within 0..1 to linear light.
template <typename V>
PB_LANE_CODE V LinearLight(V c) {
  const V curved = PositivePower((c + V::All(0.055f)) * V::All(1.0f / 1.055f), 2.4f);
  return WhereAtMost(c, V::All(0.04045f), c * V::All(1.0f / 12.92f), curved);
}

/// And back.
template <typename V>
PB_LANE_CODE V ShownLight(V c) {
  const V curved = FusedAdd(V::All(1.055f), PositivePower(c, 1.0f / 2.4f), V::All(-0.055f));
  return WhereAtMost(c, V::All(0.0031308f), c * V::All(12.92f), curved);
}

/// The curve of L*a*b* and its inverse.
template <typename V>
PB_LANE_CODE V LabCurveOf(V t) {
  const V line = FusedAdd(V::All(7.787f), t, V::All(16.0f / 116.0f));
  return WhereAtMost(t, V::All(0.008856f), line, PositivePower(t, 1.0f / 3.0f));
}
template <typename V>
PB_LANE_CODE V LabCurveBack(V f) {
  const V line = (f - V::All(16.0f / 116.0f)) * V::All(1.0f / 7.787f);
  return WhereAtMost(f, V::All(0.2068966f), line, f * f * f);
}

template <typename V>
PB_LANE_CODE void MixedBy(const float (&matrix)[3][3], V (&x)[3]) {
  V y[3];
  for (int c = 0; c < 3; ++c) {
    y[c] = V::All(matrix[c][2]) * x[2];
    y[c] = FusedAdd(V::All(matrix[c][1]), x[1], y[c]);
    y[c] = FusedAdd(V::All(matrix[c][0]), x[0], y[c]);
  }
  for (int c = 0; c < 3; ++c) x[c] = y[c];
}

template <typename V>
PB_LANE_CODE void Apply(const LabMap& map, V (&rgb)[3]) {
  const V darkest = Min(Min(rgb[0], rgb[1]), rgb[2]);
  const V zero = V::All(0.0f), one = V::All(1.0f);
  V x[3];
  for (int c = 0; c < 3; ++c) {
    x[c] = LinearLight(Min(Max(rgb[c] * V::All(map.to_one), zero), one));
  }
  MixedBy(map.to_xyz, x);
  for (V& t : x) t = LabCurveOf(t);
  // L* = 116 f1 - 16, a* = 500 (f0 - f1), b* = 200 (f1 - f2): the lines are given for these.
  const V light = FusedAdd(V::All(map.scale[0]), x[1], V::All(map.offset[0]));
  const V a = FusedAdd(V::All(map.scale[1]), x[0] - x[1], V::All(map.offset[1]));
  const V b = FusedAdd(V::All(map.scale[2]), x[1] - x[2], V::All(map.offset[2]));
  V back[3] = {LabCurveBack(light + a), LabCurveBack(light), LabCurveBack(Max(light - b, zero))};
  MixedBy(map.to_rgb, back);
  for (int c = 0; c < 3; ++c) {
    const V shown = Min(Max(ShownLight(Max(back[c], zero)), zero), one) * V::All(map.white);
    rgb[c] = WhereAtMost(V::All(map.least_background), darkest, rgb[c], shown);
  }
}

}  // namespace patchbay::ops
