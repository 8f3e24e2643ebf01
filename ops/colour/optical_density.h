// The ops that are linear in optical density, composed in double into one map for each patch.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "ops/colour/od_map_math.h"
#include "runtime/core/dtype.h"
#include "runtime/model/ops/op_options.h"

namespace patchbay::ops {

/// Types of images whose values are intensities from 0 on.
inline constexpr std::array kIntensities = {DType::kUint8, DType::kUint16, DType::kFloat32};

/// "alpha" and "beta", of both jitters of stains.
template <typename Options>
plan::Option<Options> AlphaOption() {
  return plan::OptionOf(&Options::alpha,
                        {.name = "alpha",
                         .min = 0,
                         .max = 1,
                         .help = "each stain's amount is multiplied by 1 - alpha to 1 + alpha"});
}
template <typename Options>
plan::Option<Options> BetaOption() {
  return plan::OptionOf(&Options::beta, {.name = "beta",
                                         .unit = "natural OD",
                                         .min = 0,
                                         .max = 2,
                                         .help = "and shifted by -beta to beta"});
}

using Vector3 = std::array<double, 3>;
using Matrix3 = std::array<std::array<double, 3>, 3>;

inline double Dot(const Vector3& a, const Vector3& b) {
  return a[0] * b[0] + a[1] * b[1] + a[2] * b[2];
}

/// y = matrix x + offset, of natural optical densities (red, green, blue).
struct OdStep {
  Matrix3 matrix{{{1, 0, 0}, {0, 1, 0}, {0, 0, 1}}};
  std::array<double, 3> offset{};

  /// This step applied to the output of `inner`.
  OdStep After(const OdStep& inner) const;
  bool IsIdentity() const { return matrix == OdStep{}.matrix && offset == OdStep{}.offset; }
};

/// The rows that map a density to the amounts of two stains, by least squares.
std::array<Vector3, 2> LeastSquares(const std::array<Vector3, 2>& stains);

/// Adds to `matrix` the map to `factor` times the amount that `unmix` computes, in the colour
/// `stain`.
void AddStain(Matrix3& matrix, const Vector3& stain, const Vector3& unmix, double factor);

/// The composed step in the form of the formula. `white` is the largest value of the source's type;
/// values are in units of it. `od_white` is the grey level, of 255, of an optical density of 0.
OdMap OdMapOf(const OdStep& step, double od_white, double white);

}  // namespace patchbay::ops
