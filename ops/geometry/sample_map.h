// The draws of affine and elastic for one patch, as plain values that kernels take too.
#pragma once

namespace patchbay::ops {

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

inline constexpr int kElasticPointsMax = 16;

/// Control points as drawn, row by row: px along y and along x.
struct ElasticField {
  int points = 0;  ///< along each axis; 0: the patch stays as it is
  float dy[kElasticPointsMax * kElasticPointsMax] = {};
  float dx[kElasticPointsMax * kElasticPointsMax] = {};
};

}  // namespace patchbay::ops
