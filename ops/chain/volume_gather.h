// The rows of a volume's patch as they come out of the source: moved, mirrored or sampled between
// voxels. What the image and its labels share. A part of chain.
#pragma once

#include <cstdint>
#include <vector>

#include "ops/chain/carver.h"
#include "ops/chain/volume_pass.h"

namespace patchbay::ops {

/// Floats that a whole vector may reach past the end of a row.
inline constexpr std::int64_t kVectorSlack = 64;

/// Of one patch. Reserve, then Begin once the carver is fit, then rows in any order.
class VolumeGather {
 public:
  VolumeGather(const RowLoops& loops, const ConstTensorView& source, const VolumeGeometry& geometry,
               const Extent& patch);

  void Reserve(Carver& carver);
  void Begin(const Carver& carver);

  /// Row y of slice z as floats; `out` has room for whole vectors.
  void Values(std::int64_t z, std::int64_t y, float* out);
  /// The nearest voxels of a source of uint8.
  void Nearest(std::int64_t z, std::int64_t y, std::uint8_t* out);

 private:
  const std::byte* SourceRow(std::int64_t z, std::int64_t y) const;
  void FillBlock(std::byte* block) const;
  void SmoothBlock(const Carver& carver);
  void SmoothAcross(float* block, int axis, const PatchBlur& blur, float* room) const;
  /// Where the voxels of a row are sampled.
  const VoxelRow& At(std::int64_t z, std::int64_t y);
  void MoveRow(std::int64_t z, std::int64_t y);

  const RowLoops& loops_;
  const ConstTensorView source_;
  const VolumeGeometry& geometry_;
  const Extent patch_;
  bool is_contiguous_ = false, is_smoothed_ = false;
  VoxelBlock block_;
  VoxelRow row_;
  std::int64_t stride_ = 0, slice_ = -1;
  std::size_t block_at_ = 0, room_at_ = 0, padded_at_ = 0, weights_at_[4] = {}, moves_at_[3] = {};
  SplineColumns columns_;
  float* moves_[3] = {};
  std::vector<float> plane_[3];  ///< the field's points of the slice, (points, points)
};

}  // namespace patchbay::ops
