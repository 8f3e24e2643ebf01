// The map of voxels of one patch, as kernels take it too.
#pragma once

namespace patchbay::ops {

/// Maps a finished voxel (z, y, x) to a place in the source box: row a of `at` gives coordinate a,
/// as at[a][0] z + at[a][1] y + at[a][2] x + at[a][3].
struct VoxelMap {
  float at[3][4] = {{1, 0, 0, 0}, {0, 1, 0, 0}, {0, 0, 1, 0}};
  float last[3] = {};  ///< the box's last voxel; places beyond are taken for it
};

}  // namespace patchbay::ops
