// zscore over the voxels that are not 0: a line that leaves 0 as it is. Templates; include after
// the target pragma of a variant.
#pragma once

#include "ops/intensity/tone_math.h"

namespace patchbay::ops {

struct LineBesideZero {
  ValueLine line;
};

template <typename V>
PB_LANE_CODE V Applied(const LineBesideZero& step, V x) {
  return WhereEqual(x, V::All(0.0f), x, Applied(step.line, x));
}

}  // namespace patchbay::ops
