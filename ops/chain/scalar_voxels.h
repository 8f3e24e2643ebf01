// Two neighbouring voxels of a block, for one float as a lane type.
#pragma once

#include "ops/chain/scalar_lanes.h"

namespace patchbay::ops {

/// Voxels `index` and `index` + 1. No voxel from `count` on is read.
template <typename T>
PB_LANE_CODE void LoadVoxelPair(const T* voxels, ScalarLanes::Whole index, std::uint32_t /*count*/,
                                ScalarLanes& a, ScalarLanes& b) {
  a = {static_cast<float>(voxels[index.v])};
  b = {static_cast<float>(voxels[index.v + 1])};
}

}  // namespace patchbay::ops
