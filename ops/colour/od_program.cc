#include "ops/colour/od_program.h"

#include "ops/lanes/fixed_math.h"

namespace patchbay::ops {
namespace {

using Vector3 = std::array<double, 3>;

constexpr double kLog2E = 1.4426950408889634;

/// Rows: the colours of haematoxylin, eosin and DAB (Ruifrok and Johnston 2001), in natural OD.
constexpr Matrix3 kHed = {{{0.65, 0.70, 0.29}, {0.07, 0.99, 0.11}, {0.27, 0.57, 0.78}}};

double Dot(const Vector3& a, const Vector3& b) { return a[0] * b[0] + a[1] * b[1] + a[2] * b[2]; }

Vector3 Cross(const Vector3& a, const Vector3& b) {
  return {a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]};
}

Vector3 Scaled(const Vector3& v, double factor) {
  return {v[0] * factor, v[1] * factor, v[2] * factor};
}

/// Row s of the result gives the amount of the stain of row s of `stains` in a density.
Matrix3 Unmixing(const Matrix3& stains) {
  const Vector3 a = Cross(stains[1], stains[2]), b = Cross(stains[2], stains[0]),
                c = Cross(stains[0], stains[1]);
  const double inverse = 1 / Dot(stains[0], a);
  return {Scaled(a, inverse), Scaled(b, inverse), Scaled(c, inverse)};
}

/// The rows that give the amounts of two stains by least squares.
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

/// Adds `factor` times the amount that `unmix` gives, shown as `stain`.
void AddStain(Matrix3& matrix, const Vector3& stain, const Vector3& unmix, double factor) {
  for (std::size_t r = 0; r < 3; ++r) {
    for (std::size_t c = 0; c < 3; ++c) matrix[r][c] += factor * stain[r] * unmix[c];
  }
}

void AddOffset(Vector3& offset, const Vector3& stain, double amount) {
  for (std::size_t r = 0; r < 3; ++r) offset[r] += amount * stain[r];
}

double Symmetric(double bound, std::uint32_t word) {
  return bound * (2 * double{UniformFloat(word)} - 1);
}

}  // namespace

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

OdStep StainNormalizeStep(const plan::MacenkoFit& image, const plan::MacenkoFit& reference) {
  const std::array<Vector3, 2> unmix = LeastSquares(image.stains);
  OdStep step;
  step.matrix = {};
  for (std::size_t s = 0; s < 2; ++s) {
    AddStain(step.matrix, reference.stains[s], unmix[s],
             reference.max_concentrations[s] / image.max_concentrations[s]);
  }
  return step;
}

OdStep DrawStainJitter(const plan::StainJitterOptions& options, const plan::MacenkoFit& basis,
                       const DrawKey& key) {
  const PhiloxBlock factors = Draw(key, 0), shifts = Draw(key, 1);
  OdStep step;
  if (!(UniformFloat(factors.word[0]) < options.p)) return step;
  const std::array<Vector3, 2> unmix = LeastSquares(basis.stains);
  for (std::size_t s = 0; s < 2; ++s) {
    AddStain(step.matrix, basis.stains[s], unmix[s], Symmetric(options.alpha, factors.word[1 + s]));
    AddOffset(step.offset, basis.stains[s], Symmetric(options.beta, shifts.word[s]));
  }
  return step;
}

OdStep DrawHedJitter(const plan::HedJitterOptions& options, const DrawKey& key) {
  const PhiloxBlock factors = Draw(key, 0), shifts = Draw(key, 1);
  OdStep step;
  if (!(UniformFloat(factors.word[0]) < options.p)) return step;
  const Matrix3 unmix = Unmixing(kHed);
  for (std::size_t s = 0; s < (options.dab ? 3u : 2u); ++s) {
    AddStain(step.matrix, kHed[s], unmix[s], Symmetric(options.alpha, factors.word[1 + s]));
    AddOffset(step.offset, kHed[s], Symmetric(options.beta, shifts.word[s]));
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
