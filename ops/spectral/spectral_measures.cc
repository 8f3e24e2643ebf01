// Figures for people, computed from the sums: mean, deviation, percentiles, rings, focus.
#include <algorithm>
#include <cmath>

#include "ops/spectral/spectral_sums.h"

namespace patchbay::ops {
namespace {

/// Where FocusDb stops: below any image that has detail.
constexpr double kLowestFocusDb = -150;

int FrameOf(const SpectralSums& sums) { return 2 * (static_cast<int>(sums.ring_power.size()) - 1); }

/// Coefficients counted, weights included.
absl::uint128 CountOf(const SpectralSums& sums) {
  const auto frame = static_cast<std::uint64_t>(FrameOf(sums));
  return absl::uint128(sums.frames) * frame * frame;
}

/// Mean power of the coefficients in rings [first, last].
double BandPower(const SpectralSums& sums, const std::vector<std::int64_t>& counts, int first,
                 int last) {
  absl::uint128 power = 0;
  std::int64_t coefficients = 0;
  for (auto k = static_cast<std::size_t>(first); k <= static_cast<std::size_t>(last); ++k) {
    power += sums.ring_power[k];
    coefficients += counts[k];
  }
  const double n = static_cast<double>(coefficients) * static_cast<double>(sums.frames);
  return std::ldexp(static_cast<double>(power), -kRingFractionBits) / n;
}

}  // namespace

double MeanDb(const SpectralSums& sums) {
  if (sums.frames == 0) return 0;
  return static_cast<double>(sums.sum_q) / static_cast<double>(CountOf(sums)) / kSpectralSteps;
}

double StdDb(const SpectralSums& sums) {
  if (sums.frames == 0) return 0;
  const absl::uint128 n = CountOf(sums);
  // Around the whole part of the mean the integers are small: nothing cancels in double.
  const absl::uint128 whole = sums.sum_q / n;
  const absl::uint128 around = sums.sum_qq - 2 * whole * sums.sum_q + n * whole * whole;
  const double rest = static_cast<double>(sums.sum_q - whole * n) / static_cast<double>(n);
  const double variance = static_cast<double>(around) / static_cast<double>(n) - rest * rest;
  return std::sqrt(std::max(variance, 0.0)) / kSpectralSteps;
}

double PercentileDb(const SpectralSums& sums, double fraction) {
  if (sums.frames == 0) return 0;
  const double wanted = std::clamp(fraction, 0.0, 1.0) * static_cast<double>(CountOf(sums));
  double below = 0;
  std::size_t last = 0;  // the last bin that holds anything
  for (std::size_t i = 0; i < sums.histogram.size(); ++i) {
    const auto count = static_cast<double>(sums.histogram[i]);
    if (count == 0) continue;
    last = i;
    if (below + count >= wanted) {
      return kSpectralBinDb * (static_cast<double>(i) + std::max(wanted - below, 0.0) / count);
    }
    below += count;
  }
  return kSpectralBinDb * static_cast<double>(last + 1);
}

std::vector<std::int64_t> RingCounts(int frame) {
  const int half = frame / 2;
  std::vector<std::int64_t> counts(static_cast<std::size_t>(half) + 1);
  for (int ky = -half; ky < half; ++ky) {
    for (int kx = -half; kx < half; ++kx) {
      // The root of an integer is never halfway between two, so rint has no ties to settle.
      const int ring = static_cast<int>(std::lrint(std::sqrt(double(ky * ky + kx * kx))));
      if (ring <= half) ++counts[static_cast<std::size_t>(ring)];
    }
  }
  return counts;
}

std::vector<double> RingMeans(const SpectralSums& sums) {
  std::vector<double> means(sums.ring_power.size());
  if (sums.frames == 0) return means;
  const std::vector<std::int64_t> counts = RingCounts(FrameOf(sums));
  for (int k = 1; k < static_cast<int>(means.size()); ++k) {
    means[static_cast<std::size_t>(k)] = BandPower(sums, counts, k, k);
  }
  return means;
}

double FocusDb(const SpectralSums& sums, const plan::SpectralOptions& options) {
  if (sums.frames == 0) return 0;
  const std::vector<std::int64_t> counts = RingCounts(options.frame);
  const double fine = BandPower(sums, counts, options.frame / 4, options.frame / 2);
  const double coarse = BandPower(sums, counts, options.frame / 32, options.frame / 8);
  if (fine <= 0) return kLowestFocusDb;
  if (coarse <= 0) return -kLowestFocusDb;
  return std::clamp(10 * std::log10(fine / coarse), kLowestFocusDb, -kLowestFocusDb);
}

}  // namespace patchbay::ops
