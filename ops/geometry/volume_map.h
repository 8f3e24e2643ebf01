// Where the voxels of one finished patch come from, as plain values.
#pragma once

#include <vector>

#include "ops/geometry/voxel_map.h"
#include "runtime/core/box.h"

namespace patchbay::ops {

/// Control points as drawn, (points, points, points) of each axis, in finished voxels.
struct VolumeField {
  int points = 0;  ///< along each axis; 0: the patch stays as it is
  std::vector<float> moves[3];
  float inverse_spacing[3] =
      {};  ///< of the points, 1 / finished voxels; 0 along an axis of one voxel
};

/// The drawn geometry of one patch of a volume.
struct VolumeGeometry {
  /// The box to read, in voxels relative to the first voxel of the patch's own box.
  Box source;
  /// Voxels move as they are, mirrored along these axes (z, y, x). Otherwise each is the mean of
  /// eight at the place that the field, then the map give.
  bool whole_voxels = true;
  bool mirrored[3] = {};
  VoxelMap map;
  VolumeField field;
  /// Deviation, in voxels that are read, of the Gaussian that comes before the map; 0: none.
  double smooth[3] = {};
};

}  // namespace patchbay::ops
