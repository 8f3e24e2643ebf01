// Linear maps with bounds: window, the normalisers, and maps computed from the statistics of a
// patch. Templates; include after the target pragma of a variant.
#pragma once

#include "ops/intensity/patch_stats.h"
#include "ops/intensity/tone.h"
#include "ops/lanes/lane_code.h"

namespace patchbay::ops {

/// NaN becomes the window's low end.
template <typename V>
PB_LANE_CODE V Applied(const WindowStep& window, V x) {
  return Min(Max((x - V::All(window.low)) * V::All(window.scale), V::All(0.0f)), V::All(1.0f));
}

template <typename V>
PB_LANE_CODE V Applied(const ValueLine& line, V x) {
  return FusedAdd(x, V::All(line.slope), V::All(line.offset));
}

template <typename V>
PB_LANE_CODE V Applied(const ClippedLine& clip, V x) {
  return Applied(clip.line, Min(Max(x, V::All(clip.lower)), V::All(clip.upper)));
}

template <typename V>
PB_LANE_CODE V Applied(const LineWithin& line, V x) {
  x = FusedAdd(x, V::All(line.slope), V::All(line.offset));
  return Min(Max(x, V::All(line.least)), V::All(line.most));
}

}  // namespace patchbay::ops
