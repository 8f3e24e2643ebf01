// stain_normalize: reinhard of a patch, as plain values that kernels take too.
#pragma once

#include "ops/steps/step_forms.h"

namespace patchbay::ops {

/// stain_normalize: reinhard. L*, a* and b* (116 f1 - 16, 500 (f0 - f1), 200 (f1 - f2) of the curve
/// f) become scale times themselves plus offset, both in units of the curve.
struct LabMap {
  static constexpr StepForm kForm = StepForm::kRgb;
  float to_xyz[3][3] = {};  ///< of linear red, green, blue; white is 1, 1, 1
  float to_rgb[3][3] = {};  ///< and back
  float scale[3] = {1, 1, 1}, offset[3] = {0, 0, 0};
  float to_one = 1.0f / 255, white = 255;  ///< the largest value, and the factor that maps it to 1
  float least_background = 170;            ///< pixels none of whose values is below it stay
};

}  // namespace patchbay::ops
