// Places of voxels in the box that is read. Templates; include after the target pragma of a
// variant.
#pragma once

#include "ops/geometry/voxel_map.h"
#include "ops/lanes/lane_code.h"

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

}  // namespace patchbay::ops
