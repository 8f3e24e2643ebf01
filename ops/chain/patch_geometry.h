// The map from the pixels of a finished patch to their source, as plain values that kernels take
// too. A part of chain.
#pragma once

#include <cstdint>

#include "ops/geometry/sample_map.h"
#include "ops/geometry/strided.h"

namespace patchbay::ops {

/// The source of a finished pixel (i, j): y = window.y + (transpose ? j : i), mirrored in the
/// window when reverse_y; x likewise with i and j exchanged.
struct WindowMap {
  bool transpose = false;
  bool reverse_y = false, reverse_x = false;
  std::int64_t source_y = 0, source_x = 0;     ///< the window's first pixel
  std::int64_t out_height = 0, out_width = 0;  ///< of the finished patch
};

/// The place of finished pixel (i, j) in the source.
PB_HOST_DEVICE inline PixelPlace SourceOf(const WindowMap& map, std::int64_t i, std::int64_t j) {
  const std::int64_t window_height = map.transpose ? map.out_width : map.out_height;
  const std::int64_t window_width = map.transpose ? map.out_height : map.out_width;
  const std::int64_t y = map.transpose ? j : i, x = map.transpose ? i : j;
  return {map.source_y + (map.reverse_y ? window_height - 1 - y : y),
          map.source_x + (map.reverse_x ? window_width - 1 - x : x)};
}

/// The map from the pixels of one finished patch to its source box.
struct PatchGeometry {
  /// True: pixels move unchanged, as in `window`. False: each is interpolated from four at the
  /// place that elastic, then `map`, then the folds compute.
  bool whole_pixels = true;
  WindowMap window;
  AffineMap map;
  BorderFold fold_y, fold_x;
  ElasticField elastic;
  float inverse_spacing_y = 0, inverse_spacing_x = 0;  ///< of elastic's control points
};

}  // namespace patchbay::ops
