// The source place of a finished pixel and its value there: the linear map of affine, the border
// rule, the weighted mean of four pixels. Templates; include after the target pragma of a variant.
#pragma once

#include "ops/geometry/sample_map.h"
#include "ops/lanes/lane_code.h"

namespace patchbay::ops {

template <typename V>
PB_LANE_CODE V MappedY(const AffineMap& map, V i, V j) {
  return FusedAdd(V::All(map.yy), i, FusedAdd(V::All(map.yx), j, V::All(map.y0)));
}
template <typename V>
PB_LANE_CODE V MappedX(const AffineMap& map, V i, V j) {
  return FusedAdd(V::All(map.xx), j, FusedAdd(V::All(map.xy), i, V::All(map.x0)));
}

template <typename V>
PB_LANE_CODE V Folded(V at, const BorderFold& fold) {
  const V shift = V::All(fold.shift), period = V::All(fold.period);
  const V shifted = at + shift;
  const V turn = FusedAdd(Floor(shifted * V::All(fold.inverse)), V::All(-fold.period), shifted);
  const V mirrored = Min(turn, period - turn) - shift;
  return Min(Max(mirrored, V::All(0.0f)), V::All(fold.last));
}

/// The pixel before a folded coordinate: one less at the far edge, so that its neighbour is inside.
template <typename V>
PB_LANE_CODE V PixelBefore(V folded, const BorderFold& fold) {
  return Max(Min(Floor(folded), V::All(fold.last - 1.0f)), V::All(0.0f));
}

/// Between a and b, `part` of the way.
template <typename V>
PB_LANE_CODE V Between(V a, V b, V part) {
  return FusedAdd(part, b - a, a);
}

}  // namespace patchbay::ops
