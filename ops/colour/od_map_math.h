// The linear map of optical densities that stain_normalize, stain_jitter and hed_jitter are
// composed into, on red, green and blue together. Templates; include after the target pragma of a
// variant.
#pragma once

#include "ops/colour/od_map.h"
#include "ops/lanes/float_math.h"

namespace patchbay::ops {

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
