// Where the pixels of a finished patch come from, as plain values that kernels take too. A part of
// chain.
#pragma once

#include <cstdint>

#include "ops/geometry/sample_map.h"
#include "ops/geometry/strided.h"

namespace patchbay::ops {

/// Where a finished pixel (i, j) comes from: source y = window.y + (transpose ? j : i), mirrored in
/// the window when reverse_y; x likewise with i and j exchanged.
struct WindowMap {
  bool transpose = false;
  bool reverse_y = false, reverse_x = false;
  std::int64_t source_y = 0, source_x = 0;     ///< the window's first pixel
  std::int64_t out_height = 0, out_width = 0;  ///< of the finished patch
};

/// Where finished pixel (i, j) lies in the source.
PB_HOST_DEVICE inline PixelPlace SourceOf(const WindowMap& map, std::int64_t i, std::int64_t j) {
  const std::int64_t window_height = map.transpose ? map.out_width : map.out_height;
  const std::int64_t window_width = map.transpose ? map.out_height : map.out_width;
  const std::int64_t y = map.transpose ? j : i, x = map.transpose ? i : j;
  return {map.source_y + (map.reverse_y ? window_height - 1 - y : y),
          map.source_x + (map.reverse_x ? window_width - 1 - x : x)};
}

/// Where the pixels of one finished patch come from in its source box.
struct PatchGeometry {
  /// Pixels move as they are; the values are those of `window`. Otherwise each is the mean of four
  /// at the place that elastic, then `map`, then the folds give.
  bool whole_pixels = true;
  WindowMap window;
  AffineMap map;
  BorderFold fold_y, fold_x;
  ElasticField elastic;
  float inverse_spacing_y = 0, inverse_spacing_x = 0;  ///< of elastic's control points
};

}  // namespace patchbay::ops
