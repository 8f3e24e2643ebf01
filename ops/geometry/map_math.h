// The source place of a finished pixel or voxel and its value there: the displacement of a field (a
// cubic B-spline through a grid of control points), the linear map, the border rule, the weighted
// mean of neighbours. Templates; include after the target pragma of a variant.
#pragma once

#include "ops/geometry/patch_maps.h"
#include "ops/lanes/lane_code.h"

namespace patchbay::ops {

/// Where a pixel lies among the control points of one axis.
template <typename V>
struct SplinePlace {
  int cell = 0;  ///< the first of the four points that move it
  V weight[4];
};

/// Pixel `at` of an axis whose control points are 1 / inverse_spacing apart. V is one float.
template <typename V>
PB_LANE_CODE SplinePlace<V> PlaceInSpline(int at, float inverse_spacing, int points) {
  const V where = V::All(static_cast<float>(at)) * V::All(inverse_spacing);
  SplinePlace<V> place;
  place.cell = static_cast<int>(where.v);
  if (place.cell > points - 4) place.cell = points - 4;
  const V t = where - V::All(static_cast<float>(place.cell));
  const V s = V::All(1.0f) - t, sixth = V::All(1.0f / 6.0f), two_thirds = V::All(2.0f / 3.0f);
  const V tt = t * t, ss = s * s;
  place.weight[0] = ss * s * sixth;
  place.weight[1] = FusedAdd(tt, FusedAdd(t, V::All(0.5f), V::All(-1.0f)), two_thirds);
  place.weight[2] = FusedAdd(ss, FusedAdd(s, V::All(0.5f), V::All(-1.0f)), two_thirds);
  place.weight[3] = tt * t * sixth;
  return place;
}

/// The weighted sum of four.
template <typename V>
PB_LANE_CODE V SplineSum(const V (&weight)[4], V a, V b, V c, V d) {
  return FusedAdd(weight[3], d, FusedAdd(weight[2], c, FusedAdd(weight[1], b, weight[0] * a)));
}

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

/// Coordinate `axis` of a finished voxel in the box that is read, within it; along the map's
/// nearest axis a whole one, halves upwards.
template <typename V>
PB_LANE_CODE V MappedAlong(const VoxelMap& map, int axis, V z, V y, V x) {
  const float* k = map.at[axis];
  const V at =
      FusedAdd(V::All(k[0]), z, FusedAdd(V::All(k[1]), y, FusedAdd(V::All(k[2]), x, V::All(k[3]))));
  const V inside = Min(Max(at, V::All(0.0f)), V::All(map.last[axis]));
  return axis == map.nearest_axis ? Floor(inside + V::All(0.5f)) : inside;
}

/// The voxel before a place; one less at the far end, so that its neighbour is inside.
template <typename V>
PB_LANE_CODE V VoxelBefore(V at, float last) {
  return Min(Floor(at), V::All(last - 1.0f));
}

}  // namespace patchbay::ops
