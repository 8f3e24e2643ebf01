// The linear map of optical densities that stain_normalize, stain_jitter and hed_jitter are
// composed into, on red, green and blue together. Templates; include after the target pragma of a
// variant.
#pragma once

#include "ops/lanes/float_math.h"
#include "ops/steps/step_forms.h"

namespace patchbay::ops {

/// exp2(matrix log2(clip(v, lowest, highest)) + offset), at most `white`.
struct OdMap {
  static constexpr StepForm kForm = StepForm::kRgb;
  float matrix[3][3] = {{1, 0, 0}, {0, 1, 0}, {0, 0, 1}};
  float offset[3] = {0, 0, 0};
  float lowest = 1, highest = 255;  ///< limits of an input value
  float white = 255;                ///< the largest output
};

template <typename V>
PB_LANE_CODE void Apply(const OdMap& map, V (&rgb)[3]) {
  V log[3];
  for (int c = 0; c < 3; ++c) {
    log[c] = BinaryLog(Min(Max(rgb[c], V::All(map.lowest)), V::All(map.highest)));
  }
  for (int c = 0; c < 3; ++c) {
    V sum = FusedAdd(V::All(map.matrix[c][2]), log[2], V::All(map.offset[c]));
    sum = FusedAdd(V::All(map.matrix[c][1]), log[1], sum);
    sum = FusedAdd(V::All(map.matrix[c][0]), log[0], sum);
    rgb[c] = Min(BinaryPower(sum), V::All(map.white));
  }
}

}  // namespace patchbay::ops
