// elastic: the displacement of a finished pixel, a cubic B-spline through a grid of control points
// (cell and four weights along each axis). Templates; include after the target pragma of a variant.
#pragma once

#include "ops/geometry/sample_map.h"
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

}  // namespace patchbay::ops
