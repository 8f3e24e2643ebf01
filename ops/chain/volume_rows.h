// The loops of a chain of volumes, one finished row at a time, beside those of float_rows.h. Each
// is written once, for every width of register; all give the same bits. A part of chain.
#pragma once

#include <cstddef>
#include <cstdint>

#include "ops/chain/float_rows.h"
#include "ops/volume/tone.h"
#include "ops/volume/volume_map.h"
#include "ops/volume/volume_stats.h"
#include "runtime/core/dtype.h"
#include "runtime/core/extent.h"

namespace patchbay::ops {

/// What is read, contiguous (z, y, x); at least two voxels along each axis.
struct VoxelBlock {
  const std::byte* data = nullptr;
  DType dtype = DType::kInt16;  ///< uint8, uint16, int16 or float32
  Extent size;
};

/// One finished row sampled between voxels.
struct VoxelRow {
  const VoxelBlock* block = nullptr;
  const VoxelMap* map = nullptr;
  std::int64_t z = 0, y = 0;   ///< of the finished patch
  const float* moves[3] = {};  ///< of its voxels along z, y and x; null: none move
  std::int64_t width = 0;
};

/// One variant of the loops. Rows have room for whole vectors past their width.
struct VolumeLoops {
  /// `out` has room for a whole vector past the row.
  void (*gather)(const VoxelRow& row, float* out);
  /// The nearest voxel of a block of uint8, halves upwards.
  void (*nearest)(const VoxelRow& row, std::uint8_t* out);
  void (*tone)(const Tone& tone, std::int64_t width, float* row);
  PatchSums (*sums)(const float* row, std::int64_t width, float shift);  ///< of a row alone
  void (*line)(const LineWithin& line, std::int64_t width, float* row);
  void (*power)(const PowerCurve& curve, std::int64_t width, float* row);
  /// The spline along a row through `at_row`, as columns say.
  void (*spline)(const float* at_row, const SplineColumns& columns, int points, float* out);
};

const VolumeLoops& ScalarVolumeLoops();
const VolumeLoops& Avx2VolumeLoops();
const VolumeLoops& Avx512VolumeLoops();

}  // namespace patchbay::ops
