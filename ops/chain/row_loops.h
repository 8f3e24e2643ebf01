// The loops of a chain that works in float, one finished row of an image or a volume at a time:
// rows stay in the first-level cache from the gather to the store, and no image lies between two
// ops. Each loop is written once, for every width of register; all give the same bits. A part of
// chain.
#pragma once

#include <cstddef>
#include <cstdint>

#include "ops/chain/any_step.h"
#include "ops/chain/chain_rows.h"
#include "ops/geometry/patch_maps.h"
#include "ops/intensity/patch_stats.h"
#include "ops/lanes/cast_bits.h"
#include "runtime/core/dtype.h"
#include "runtime/core/extent.h"

namespace patchbay::ops {

/// Floats of the widest register.
inline constexpr std::int64_t kRowAlign = 16;

/// The values of one row, channel after channel. Loops work on whole vectors, and may overwrite
/// values between `width` and `stride`.
struct FloatRows {
  float* value = nullptr;
  std::int64_t stride = 0;  ///< floats from one channel to the next, a multiple of kRowAlign
  std::int64_t width = 0;
  int channels = 0;

  float* Row(int c) const { return value + c * stride; }
  FloatRows Channel(int c) const { return {Row(c), stride, width, 1}; }
};

/// One finished row sampled between pixels.
struct PixelRow {
  const Strided* source = nullptr;
  DType dtype = DType::kUint8;
  const PatchGeometry* geometry = nullptr;
  std::int64_t row = 0;                      ///< row of the finished patch
  const float *dy = nullptr, *dx = nullptr;  ///< displacements of its pixels, or null
  float *at_y = nullptr, *at_x = nullptr;    ///< room for `stride` places
};

/// The source voxels, contiguous (z, y, x); at least two voxels along each axis.
struct VoxelBlock {
  const std::byte* data = nullptr;
  DType dtype = DType::kInt16;  ///< uint8, uint16, int16 or float32
  Extent size;
};

/// One finished row sampled between voxels.
struct VoxelRow {
  const VoxelBlock* block = nullptr;
  const VoxelMap* map = nullptr;
  std::int64_t z = 0, y = 0;   ///< plane and row of the finished patch
  const float* moves[3] = {};  ///< displacements of its voxels along z, y and x; null: none
  std::int64_t width = 0;
};

/// The weights of every column of a patch under a field, and the cells that they count from.
struct SplineColumns {
  float* weight[4] = {};                   ///< `stride` of each
  std::int64_t end[kFieldPointsMax] = {};  ///< end of the columns of each cell; the last: stride
};

/// The destination of a finished row.
struct RowTarget {
  std::byte* out = nullptr;        ///< its first element
  std::int64_t channel_bytes = 0;  ///< from one channel of a pixel to the next
  bool planar = true;              ///< a channel's elements lie one after another
  CastTo to = CastTo::kFloat32;
  std::byte* room = nullptr;  ///< stride elements of every channel
};

/// One variant of the loops.
struct RowLoops {
  const char* name;
  /// Places of the row's pixels in the source, folded: for sources without a gather of their own.
  void (*places)(const PixelRow& pixels, std::int64_t stride);
  /// Three channels of uint8 whose pixels touch: the values of the row. Needs FitsRgbGather.
  void (*gather_rgb)(const PixelRow& pixels, const FloatRows& rows);
  /// Bytes, `stride` of each channel, as floats.
  void (*widen)(const std::uint8_t* bytes, const FloatRows& rows);
  void (*spline_columns)(std::int64_t stride, float inverse_spacing, int points,
                         SplineColumns& columns);
  /// Displacements of row `row` along one axis. `field` has points x points.
  void (*displace)(const PatchGeometry& geometry, const float* field, const SplineColumns& columns,
                   std::int64_t row, float* out);
  /// A step of each number over a row. `bytes` has the step in its type; `row` counts the finished
  /// rows of all planes.
  void (*const* point)(const void* bytes, std::int64_t row, const FloatRows& rows);
  /// The sum over `width` pixels of the grey of values in 0..1, in steps of 2^-16.
  std::uint64_t (*grey_sum)(const FloatRows& rows, float white);
  /// out[j] = sum of weight[k] * tap[k][j].
  void (*weigh)(const float* weight, const float* const* tap, int count, std::int64_t stride,
                float* out);
  void (*store)(const FloatRows& rows, const RowTarget& target);

  // For volumes, a row of one channel: `out` and `row` have room for a whole vector past the width.
  void (*gather_voxels)(const VoxelRow& row, float* out);
  /// The nearest voxel of a block of uint8, halves upwards.
  void (*nearest_voxels)(const VoxelRow& row, std::uint8_t* out);
  PatchSums (*sums)(const float* row, std::int64_t width, float shift);  ///< sums of a row alone
  /// The spline along a row through `at_row`, at `columns`.
  void (*spline)(const float* at_row, const SplineColumns& columns, int points, float* out);
};

/// Applies a step to a row.
inline void ApplyToRow(const RowLoops& loops, const AnyPointStep& step, std::int64_t row,
                       const FloatRows& rows) {
  loops.point[step.number](step.bytes, row, rows);
}

const RowLoops& ScalarRowLoops();
const RowLoops& Avx2RowLoops();
/// Only where HasAvx512.
const RowLoops& Avx512RowLoops();
/// The variant of a level on this machine.
const RowLoops& LoopsAt(CpuLevel level);

/// The source has three channels of bytes that touch, two columns or more, and room for a load of
/// eight bytes.
bool FitsRgbGather(const Strided& source, DType dtype);

/// Interleaves the channels in the target's buffer into its pixels.
void Interleave(const FloatRows& rows, const RowTarget& target);

/// Steps that are carried in double, one after another over a few values of a row.
void ApplyExactly(const ExactStep& step, const FloatRows& rows);

/// The gather by single pixels, for any type, strides and channels. Needs the places.
void GatherAny(const PixelRow& pixels, const FloatRows& rows);
/// The nearest pixel of every place, of a one-channel image of bytes.
void GatherNearest(const PixelRow& pixels, std::int64_t width, std::uint8_t* out);
/// A row of whole pixels, any type.
void CopyPixels(const Strided& source, DType dtype, const WindowMap& window, std::int64_t row,
                const FloatRows& rows);

}  // namespace patchbay::ops
