// Maps of optical densities, as plain values that kernels take too.
#pragma once

#include "ops/steps/step_forms.h"

namespace patchbay::ops {

/// exp2(matrix log2(clip(v, lowest, highest)) + offset), at most `white`.
struct OdMap {
  static constexpr StepForm kForm = StepForm::kRgb;
  float matrix[3][3] = {{1, 0, 0}, {0, 1, 0}, {0, 0, 1}};
  float offset[3] = {0, 0, 0};
  float lowest = 1, highest = 255;  ///< of an input value
  float white = 255;                ///< the largest output
};

}  // namespace patchbay::ops
