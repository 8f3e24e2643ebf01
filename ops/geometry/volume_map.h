// The map from the voxels of one finished patch to their source, as plain values.
#pragma once

#include <vector>

#include "ops/geometry/voxel_map.h"
#include "runtime/core/box.h"

namespace patchbay::ops {

/// Control points as drawn, (points, points, points) of each axis, in finished voxels.
struct VolumeField {
  int points = 0;  ///< along each axis; 0: the patch stays as it is
  std::vector<float> moves[3];
  /// 1 / distance of the control points, in 1 / finished voxels; 0 along an axis of one voxel.
  float inverse_spacing[3] = {};
};

/// The drawn geometry of one patch of a volume.
struct VolumeGeometry {
  /// The box to read, in voxels relative to the first voxel of the patch's own box.
  Box source;
  /// True: voxels are moved unchanged, mirrored along the axes of `mirrored` (z, y, x). False: each
  /// is interpolated from eight at the place that the field and then the map compute.
  bool whole_voxels = true;
  bool mirrored[3] = {};
  VoxelMap map;
  VolumeField field;
  /// Deviation, in source voxels, of the Gaussian applied before the map; 0: none.
  double smooth[3] = {};
};

}  // namespace patchbay::ops
