// Lines with bounds: window and the normalisers, and those that statistics of a patch come to.
// Templates; include after the target pragma of a variant.
#pragma once

#include "ops/intensity/patch_stats.h"
#include "ops/intensity/tone.h"
#include "ops/lanes/lane_code.h"

namespace patchbay::ops {

/// NaN becomes the window's low end.
template <typename V>
PB_LANE_CODE V Toned(const Tone& tone, V x) {
  if (tone.has_window) {
    x = Min(Max((x - V::All(tone.low)) * V::All(tone.scale), V::All(0.0f)), V::All(1.0f));
  }
  if (tone.has_clip) x = Min(Max(x, V::All(tone.lower)), V::All(tone.upper));
  return FusedAdd(x, V::All(tone.slope), V::All(tone.offset));
}

template <typename V>
PB_LANE_CODE V Lined(const LineWithin& line, V x) {
  x = FusedAdd(x, V::All(line.slope), V::All(line.offset));
  return Min(Max(x, V::All(line.least)), V::All(line.most));
}

}  // namespace patchbay::ops
