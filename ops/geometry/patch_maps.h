// An image, and the maps from the pixels and voxels of a finished patch to it, as plain values that
// kernels take too: no dependence on the rest of the program.
#pragma once

#include <cstddef>
#include <cstdint>

#include "runtime/core/random.h"

namespace patchbay::ops {

/// Rows, columns, channels; strides in bytes. Does not own.
struct Strided {
  std::byte* data = nullptr;  ///< only read when it is a function's input
  std::int64_t height = 0, width = 0, channels = 0;
  std::int64_t row_bytes = 0, column_bytes = 0, channel_bytes = 0;
  int element_bytes = 1;

  PB_HOST_DEVICE std::byte* At(std::int64_t y, std::int64_t x, std::int64_t c) const {
    return data + y * row_bytes + x * column_bytes + c * channel_bytes;
  }
};

/// A pixel of an image.
struct PixelPlace {
  std::int64_t y = 0, x = 0;
};

/// The key of one op's parameters (plan::Occurrence), from any of the patch's.
inline DrawKey ParameterKey(const DrawKey& key, std::uint32_t occurrence) {
  return {key.seed, key.epoch, key.ordinal, occurrence, DrawStream::kParameters};
}

/// The source of a finished pixel (i, j): y = window.y + (transpose ? j : i), mirrored in the
/// window when reverse_y; x likewise with i and j exchanged.
struct WindowMap {
  bool transpose = false;
  bool reverse_y = false, reverse_x = false;
  std::int64_t source_y = 0, source_x = 0;     ///< the window's first pixel
  std::int64_t out_height = 0, out_width = 0;  ///< size of the finished patch
};

/// The place of finished pixel (i, j) in the source.
PB_HOST_DEVICE inline PixelPlace SourceOf(const WindowMap& map, std::int64_t i, std::int64_t j) {
  const std::int64_t window_height = map.transpose ? map.out_width : map.out_height;
  const std::int64_t window_width = map.transpose ? map.out_height : map.out_width;
  const std::int64_t y = map.transpose ? j : i, x = map.transpose ? i : j;
  return {map.source_y + (map.reverse_y ? window_height - 1 - y : y),
          map.source_x + (map.reverse_x ? window_width - 1 - x : x)};
}

/// Finished (i, j) to source: y = yy i + yx j + y0, x = xy i + xx j + x0.
struct AffineMap {
  float yy = 1, yx = 0, y0 = 0;
  float xy = 0, xx = 1, x0 = 0;
};

/// A border rule along one axis: a coordinate is shifted, taken modulo the period, mirrored in its
/// middle, shifted back and kept within 0..last. Coordinates inside stay as they are.
struct BorderFold {
  float shift = 0, period = 0, inverse = 0;
  float last = 0;  ///< the last pixel
};

inline constexpr int kFieldPointsMax = 16;

/// Displacements at control points, row by row: px along y and along x.
struct PixelField {
  int points = 0;  ///< along each axis; 0: the patch stays as it is
  float dy[kFieldPointsMax * kFieldPointsMax] = {};
  float dx[kFieldPointsMax * kFieldPointsMax] = {};
};

/// The map from the pixels of one finished patch to its source box.
struct PatchGeometry {
  /// True: pixels move unchanged, as in `window`. False: each is interpolated from four at the
  /// place that the field, then `map`, then the folds compute.
  bool whole_pixels = true;
  WindowMap window;
  AffineMap map;
  BorderFold fold_y, fold_x;
  PixelField field;
  float inverse_spacing_y = 0, inverse_spacing_x = 0;  ///< inverse distance of the field's points
};

/// Maps a finished voxel (z, y, x) to a place in the source box: row a of `at` gives coordinate a,
/// as at[a][0] z + at[a][1] y + at[a][2] x + at[a][3].
struct VoxelMap {
  float at[3][4] = {{1, 0, 0, 0}, {0, 1, 0, 0}, {0, 0, 1, 0}};
  float last[3] = {};     ///< the box's last voxel; places beyond are taken for it
  int nearest_axis = -1;  ///< axis whose places are those of the nearest voxel; -1: none
};

/// The two samples of an axis that sample i becomes, and their parts, when the axis is taken down
/// to fewer samples by order 0 and up again by order 1.
struct CoarseTap {
  std::int32_t first = 0, second = 0;
  float first_part = 1, second_part = 0;
};

}  // namespace patchbay::ops
