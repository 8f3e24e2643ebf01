#include <array>
#include <cmath>
#include <cstddef>

#include "ops/stain_normalize/reinhard_math.h"
#include "runtime/model/ops/stain_fit.h"

namespace patchbay::ops {
namespace {

using Matrix = std::array<std::array<double, 3>, 3>;

/// sRGB's primaries in XYZ, D65, and the white point of 2 degrees: those of LabOf.
constexpr Matrix kXyzOfRgb = {{{0.412453, 0.357580, 0.180423},
                               {0.212671, 0.715160, 0.072169},
                               {0.019334, 0.119193, 0.950227}}};
constexpr std::array<double, 3> kWhitePoint = {0.95047, 1.0, 1.08883};

Matrix InverseOf(const Matrix& m) {
  Matrix inverse{};
  double determinant = 0;
  for (std::size_t i = 0; i < 3; ++i) {
    for (std::size_t j = 0; j < 3; ++j) {
      const std::size_t a = (j + 1) % 3, b = (j + 2) % 3, c = (i + 1) % 3, d = (i + 2) % 3;
      inverse[i][j] = m[a][c] * m[b][d] - m[a][d] * m[b][c];
    }
  }
  for (std::size_t i = 0; i < 3; ++i) determinant += m[0][i] * inverse[i][0];
  for (auto& row : inverse) {
    for (double& v : row) v /= determinant;
  }
  return inverse;
}

}  // namespace

LabMap LabMapOf(const plan::ReinhardFit& image, const plan::ReinhardFit& reference, double white) {
  LabMap map;
  const Matrix back = InverseOf(kXyzOfRgb);
  for (std::size_t i = 0; i < 3; ++i) {
    for (std::size_t j = 0; j < 3; ++j) {
      map.to_xyz[i][j] = static_cast<float>(kXyzOfRgb[i][j] / kWhitePoint[i]);
      map.to_rgb[i][j] = static_cast<float>(back[i][j] * kWhitePoint[j]);
    }
  }
  // value = quotient * (value - mean) + reference mean, of L* = 116 f - 16, a* = 500 f, b* = 200 f.
  constexpr std::array<double, 3> kUnit = {116, 500, 200}, kShift = {-16, 0, 0};
  for (std::size_t i = 0; i < 3; ++i) {
    const double quotient = reference.std[i] / image.std[i];
    const double offset = quotient * (kShift[i] - image.mean[i]) + reference.mean[i] - kShift[i];
    map.scale[i] = static_cast<float>(quotient);
    map.offset[i] = static_cast<float>(offset / kUnit[i]);
  }
  map.to_one = static_cast<float>(1 / white);
  map.white = static_cast<float>(white);
  const double least = plan::kStainWhite * std::exp(-plan::kStainTissueOd);
  map.least_background = static_cast<float>(least / 255 * white);
  return map;
}

}  // namespace patchbay::ops
