// posterize: rounds a value down to the low end of its level. Templates; include after the target
// pragma of a variant.
#pragma once

#include "ops/lanes/lane_code.h"

namespace patchbay::ops {

/// Levels `height` apart from `low` on, numbered from 0 to `last`.
struct PosterizeStep {
  float low = 0, height = 1, inverse = 1, last = 255;
};

/// NaN becomes `low`.
template <typename V>
PB_LANE_CODE V Applied(const PosterizeStep& step, V x) {
  const V level = Floor((x - V::All(step.low)) * V::All(step.inverse));
  return Min(Max(level, V::All(0.0f)), V::All(step.last)) * V::All(step.height) + V::All(step.low);
}

}  // namespace patchbay::ops
