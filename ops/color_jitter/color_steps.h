// color_jitter of a patch, as plain values that kernels take too.
#pragma once

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
  JitterStep jitter;
};

}  // namespace patchbay::ops
