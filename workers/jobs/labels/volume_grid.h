// Classes of one grid of voxels onto another that lies in the same patient.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "workers/sources/volumes/patient_axes.h"
#include "workers/sources/volumes/volume.h"

namespace patchbay::workers {

struct VoxelGrid {
  Extent size;
  Affine affine;
};

/// How classes came onto the other grid.
struct GridFit {
  /// Every voxel of the image lies on one of the mask, to a hundredth of a voxel: copied. Otherwise
  /// each image voxel takes the class with the most weight among the eight around it, as linear
  /// interpolation weighs them (of several the smallest value).
  bool is_aligned = false;
  std::uint64_t covered = 0;  ///< voxels of the image that the mask reaches
};

/// The mask's values resampled to the voxels of `image`; `outside` for voxels beyond the mask,
/// whose voxels reach half a voxel around their centres. Errors of `progress`, called once a slice,
/// end the work.
StatusOr<std::vector<std::uint8_t>> OntoGrid(std::span<const std::uint8_t> values,
                                             const VoxelGrid& mask, const VoxelGrid& image,
                                             std::uint8_t outside, const VolumeProgress& progress,
                                             GridFit& fit);

/// Voxels of each value of `mask` whose centres lie more than a hundredth of a voxel outside
/// `image`. Errors of `progress`, called once a slice, end the work.
StatusOr<std::array<std::uint64_t, 256>> CountOutside(std::span<const std::uint8_t> values,
                                                      const VoxelGrid& mask, const VoxelGrid& image,
                                                      const VolumeProgress& progress);

}  // namespace patchbay::workers
