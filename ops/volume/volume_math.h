// The formulas of volumes: places of voxels, the mean of eight, window and normalisation, power.
// Templates; include after the target pragma of a variant.
#pragma once

#include "ops/geometry/sample_math.h"
#include "ops/lanes/float_math.h"
#include "ops/volume/tone.h"
#include "ops/volume/volume_stats.h"
#include "ops/volume/voxel_map.h"

namespace patchbay::ops {

/// Coordinate `axis` of a finished voxel in the box that is read, within it.
template <typename V>
PB_LANE_CODE V MappedAlong(const VoxelMap& map, int axis, V z, V y, V x) {
  const float* k = map.at[axis];
  const V at =
      FusedAdd(V::All(k[0]), z, FusedAdd(V::All(k[1]), y, FusedAdd(V::All(k[2]), x, V::All(k[3]))));
  return Min(Max(at, V::All(0.0f)), V::All(map.last[axis]));
}

/// The voxel before a place; one less at the far end, so that its neighbour is inside.
template <typename V>
PB_LANE_CODE V VoxelBefore(V at, float last) {
  return Min(Floor(at), V::All(last - 1.0f));
}

/// NaN becomes the window's low end.
template <typename V>
PB_LANE_CODE V Toned(const Tone& tone, V x) {
  if (tone.has_window) {
    x = Min(Max((x - V::All(tone.low)) * V::All(tone.scale), V::All(0.0f)), V::All(1.0f));
  }
  if (tone.has_clip) x = Min(Max(x, V::All(tone.lower)), V::All(tone.upper));
  return FusedAdd(x, V::All(tone.slope), V::All(tone.offset));
}

/// x^exponent of numbers from 0 on; below 2^-126 as that.
template <typename V>
PB_LANE_CODE V Powered(V x, V exponent) {
  return BinaryPower(exponent * BinaryLog(Max(x, V::All(0x1p-126f))));
}

template <typename V>
PB_LANE_CODE V Lined(const LineWithin& line, V x) {
  x = FusedAdd(x, V::All(line.slope), V::All(line.offset));
  return Min(Max(x, V::All(line.least)), V::All(line.most));
}

template <typename V>
PB_LANE_CODE V Curved(const PowerCurve& curve, V x) {
  const V part = (x - V::All(curve.least)) * V::All(curve.inverse);
  return FusedAdd(Powered(part, V::All(curve.exponent)), V::All(curve.range), V::All(curve.least));
}

}  // namespace patchbay::ops
