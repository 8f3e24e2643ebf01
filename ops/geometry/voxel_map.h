// The map of voxels of one patch, as kernels take it too.
#pragma once

namespace patchbay::ops {

/// Axes z, y, x. A finished voxel (z, y, x) to a place in the box that is read: row a of `at` gives
/// its coordinate a, as at[a][0] z + at[a][1] y + at[a][2] x + at[a][3].
struct VoxelMap {
  float at[3][4] = {{1, 0, 0, 0}, {0, 1, 0, 0}, {0, 0, 1, 0}};
  float last[3] = {};  ///< the box's last voxel; places beyond are taken for it
};

}  // namespace patchbay::ops
