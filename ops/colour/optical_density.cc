#include "ops/colour/optical_density.h"

#include "ops/lanes/fixed_math.h"
#include "runtime/core/random.h"

namespace patchbay::ops {
namespace {

constexpr double kLog2E = 1.4426950408889634;

}  // namespace

std::array<Vector3, 2> LeastSquares(const std::array<Vector3, 2>& stains) {
  const double aa = Dot(stains[0], stains[0]), ab = Dot(stains[0], stains[1]),
               bb = Dot(stains[1], stains[1]);
  const double inverse = 1 / (aa * bb - ab * ab);
  std::array<Vector3, 2> rows;
  for (std::size_t k = 0; k < 3; ++k) {
    rows[0][k] = (bb * stains[0][k] - ab * stains[1][k]) * inverse;
    rows[1][k] = (aa * stains[1][k] - ab * stains[0][k]) * inverse;
  }
  return rows;
}

void AddStain(Matrix3& matrix, const Vector3& stain, const Vector3& unmix, double factor) {
  for (std::size_t r = 0; r < 3; ++r) {
    for (std::size_t c = 0; c < 3; ++c) matrix[r][c] += factor * stain[r] * unmix[c];
  }
}

OdStep OdStep::After(const OdStep& inner) const {
  OdStep step;
  for (std::size_t r = 0; r < 3; ++r) {
    step.offset[r] = Dot(matrix[r], inner.offset) + offset[r];
    for (std::size_t c = 0; c < 3; ++c) {
      step.matrix[r][c] = matrix[r][0] * inner.matrix[0][c] + matrix[r][1] * inner.matrix[1][c] +
                          matrix[r][2] * inner.matrix[2][c];
    }
  }
  return step;
}

OdMap OdMapOf(const OdStep& step, double od_white, double white) {
  // With L = log2(v): density = ln 2 (log2 top - L), v' = top 2^(-density' / ln 2), so that
  // L' = log2 top - M (log2 top - L) - offset / ln 2.
  const double top = od_white / 255 * white, log_top = FixedBinaryLog(top);
  OdMap map;
  for (std::size_t r = 0; r < 3; ++r) {
    double sum = 0;
    for (std::size_t c = 0; c < 3; ++c) {
      map.matrix[r][c] = static_cast<float>(step.matrix[r][c]);
      sum += step.matrix[r][c];
    }
    map.offset[r] = static_cast<float>(log_top - sum * log_top - step.offset[r] * kLog2E);
  }
  map.lowest = static_cast<float>(white / 255);
  map.highest = static_cast<float>(top);
  map.white = static_cast<float>(white);
  return map;
}

}  // namespace patchbay::ops
