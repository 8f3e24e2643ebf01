// Linear maps of places between pixels, and the border rule. Bilinear; bits do not depend on the
// width of the processor's registers.
#pragma once

#include <cstdint>

#include "ops/geometry/sample_map.h"
#include "runtime/model/ops/affine.h"

namespace patchbay::ops {

/// A linear map of places: y = yy i + yx j + y0, x = xy i + xx j + x0.
struct PlaceMap {
  double yy = 1, yx = 0, y0 = 0;
  double xy = 0, xx = 1, x0 = 0;

  /// This map of what `inner` gives.
  PlaceMap After(const PlaceMap& inner) const;
  bool IsIdentity() const;
};

BorderFold FoldOf(plan::Border border, std::int64_t pixels);

}  // namespace patchbay::ops
