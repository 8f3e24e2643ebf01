// color_jitter: brightness, contrast, saturation and hue of a pixel within 0..1, in any order.
// Templates; include after the target pragma of a variant.
#pragma once

#include "ops/intensity/tone_math.h"
#include "ops/lanes/lane_code.h"
#include "ops/steps/step_forms.h"

namespace patchbay::ops {

enum class ColorStep : int { kBrightness, kContrast, kSaturation, kHue };
inline constexpr int kColorSteps = 4;

struct ColorJitter {
  ColorStep order[kColorSteps] = {ColorStep::kBrightness, ColorStep::kContrast,
                                  ColorStep::kSaturation, ColorStep::kHue};
  float brightness = 1, contrast = 1, saturation = 1, hue = 0;
};

/// Steps [first, last) of a colour jitter; contrast is changed about `mean`.
struct JitterStep {
  static constexpr StepForm kForm = StepForm::kRgb;
  ColorJitter jitter;
  int first = 0, last = kColorSteps;
  float mean = 0, white = 255;
};

/// A colour jitter whose first step is about the mean grey of the slice.
struct MeanJitterStep {
  static constexpr WholeForm kForm = WholeForm::kGrey;
  JitterStep jitter;

  PB_HOST_DEVICE float white() const { return jitter.white; }
  PB_HOST_DEVICE JitterStep AboutGrey(float mean) const {
    JitterStep own = jitter;
    own.mean = mean;
    return own;
  }
};

/// x times `factor` and the rest of `pivot`.
template <typename V>
PB_LANE_CODE V Stretched(V x, V pivot, V factor) {
  return Within01(FusedAdd(factor, x - pivot, pivot));
}

/// The hue of hue-saturation-value turned; grey stays.
template <typename V>
PB_LANE_CODE void TurnHue(V (&rgb)[3], float turns) {
  const V zero = V::All(0.0f);
  const V most = Max(Max(rgb[0], rgb[1]), rgb[2]), least = Min(Min(rgb[0], rgb[1]), rgb[2]);
  const V spread = most - least;
  const V inverse = V::All(1.0f) / WhereEqual(spread, zero, V::All(1.0f), spread);
  const V from_red = (rgb[1] - rgb[2]) * inverse;
  const V from_green = FusedAdd(rgb[2] - rgb[0], inverse, V::All(2.0f));
  const V from_blue = FusedAdd(rgb[0] - rgb[1], inverse, V::All(4.0f));
  const V of_others = WhereEqual(rgb[1], most, from_green, from_blue);
  const V sixths = WhereEqual(rgb[0], most, from_red, of_others) + V::All(6.0f) * V::All(turns);
  for (int c = 0; c < 3; ++c) {
    // 5, 3 and 1 sixths on from red, green and blue.
    const V raw = sixths + V::All(c == 0 ? 5.0f : c == 1 ? 3.0f : 1.0f);
    const V k = FusedAdd(Floor(raw * V::All(1.0f / 6.0f)), V::All(-6.0f), raw);
    rgb[c] = FusedAdd(V::All(-1.0f) * spread, Within01(Min(k, V::All(4.0f) - k)), most);
    rgb[c] = Within01(rgb[c]);
  }
}

/// One step. `mean` is the mean grey that contrast turns about.
template <typename V>
PB_LANE_CODE void JitterColor(const ColorJitter& jitter, ColorStep step, float mean, V (&rgb)[3]) {
  switch (step) {
    case ColorStep::kBrightness:
      for (V& x : rgb) x = Within01(x * V::All(jitter.brightness));
      break;
    case ColorStep::kContrast:
      for (V& x : rgb) x = Stretched(x, V::All(mean), V::All(jitter.contrast));
      break;
    case ColorStep::kSaturation: {
      const V grey = GreyOf01(rgb);
      for (V& x : rgb) x = Stretched(x, grey, V::All(jitter.saturation));
      break;
    }
    case ColorStep::kHue:
      TurnHue(rgb, jitter.hue);
      break;
  }
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

}  // namespace patchbay::ops
