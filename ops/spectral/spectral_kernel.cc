#include "ops/spectral/spectral_kernel.h"

#include <cmath>
#include <utility>

namespace patchbay::ops {
namespace {

struct Root {
  double cosine, sine;
};

/// exp(2 pi i k / n) for k = 0 to n / 4: halved from a quarter turn by square roots, which every
/// machine and C library rounds alike.
void FillRoots(std::vector<Root>& roots, std::size_t first, std::size_t last) {
  if (last - first < 2) return;
  const std::size_t middle = (first + last) / 2;
  const double x = roots[first].cosine + roots[last].cosine;
  const double y = roots[first].sine + roots[last].sine;
  const double length = std::sqrt(x * x + y * y);
  roots[middle] = {x / length, y / length};
  FillRoots(roots, first, middle);
  FillRoots(roots, middle, last);
}

/// The whole turn, n a multiple of 4.
std::vector<Root> RootsOf(int n) {
  const auto quarter = static_cast<std::size_t>(n / 4);
  std::vector<Root> roots(4 * quarter);
  roots[0] = {1, 0};
  roots[quarter] = {0, 1};
  FillRoots(roots, 0, quarter);
  for (std::size_t k = quarter; k < 4 * quarter; ++k) {
    roots[k] = {-roots[k - quarter].sine, roots[k - quarter].cosine};
  }
  return roots;
}

std::size_t Groups(const plan::SpectralOptions& options) {
  return static_cast<std::size_t>(options.frame / kSpectralColumns);
}

int LastRingColumn(int frame, int group) {
  const std::int64_t ky = group == 0 ? 1 : group * kSpectralLanes;
  int last = 0;
  while (last < frame / 2 && RingOf(ky * ky + std::int64_t{last + 1} * (last + 1)) <= frame / 2) {
    ++last;
  }
  return last;
}

void FlushHistogram(SpectralTally& tally, SpectralSums& sums) {
  for (std::size_t bin = 0; bin < kSpectralBins; ++bin) {
    std::uint32_t twice = 0;
    for (std::size_t copy = 0; copy < kHistogramCopies; ++copy) {
      twice += std::exchange(tally.twice[copy * kSpectralBins + bin], 0);
    }
    sums.histogram[bin] += 2 * std::uint64_t{twice} + std::exchange(tally.once[bin], 0);
  }
}

void FlushRings(SpectralTally& tally, int frame, SpectralSums& sums) {
  const int half = frame / 2;
  const auto add = [&](std::int64_t square, std::uint64_t& counter, unsigned weight) {
    const int ring = RingOf(square);
    const std::uint64_t value = std::exchange(counter, 0);
    if (ring > 0 && ring <= half) {
      sums.ring_power[static_cast<std::size_t>(ring)] += absl::uint128(value) * weight;
    }
  };
  for (int g = 0; g < frame / kSpectralColumns; ++g) {
    for (int kx = 0; kx <= half; ++kx) {
      WideBlock& block = tally.rings[static_cast<std::size_t>(g * (half + 1) + kx)];
      for (int l = 0; l < kSpectralLanes; ++l) {
        const std::int64_t ky = g * kSpectralLanes + l;
        add(ky == 0 ? 0 : ky * ky + std::int64_t{kx} * kx, block.lane[l], 2);
      }
    }
  }
  constexpr unsigned kUnit = 1 << (kRingFractionBits - kEdgeFractionBits);
  for (int row = 0; row < 2; ++row) {
    const std::int64_t ky = row * half;
    for (int kx = 0; kx <= half; ++kx) {
      add(ky * ky + std::int64_t{kx} * kx,
          tally.edge_rings[static_cast<std::size_t>(row * EdgeRow(frame) + kx)],
          kx == 0 || kx == half ? kUnit : 2 * kUnit);
    }
  }
}

/// Where X[ky, kx], 0 <= kx <= frame / 2, was counted: itself or its mirror image.
template <typename Blocks, typename Edges>
std::uint64_t CoefficientAt(const Blocks& blocks, const Edges& edges, int frame, int ky, int kx) {
  const int half = frame / 2;
  if (ky % half == 0) return edges[static_cast<std::size_t>(ky / half * EdgeRow(frame) + kx)];
  if (ky > half) {
    ky = frame - ky;
    kx = (frame - kx) % frame;
  }
  const auto block = static_cast<std::size_t>(ky / kSpectralLanes * frame + kx);
  return blocks[block].lane[ky % kSpectralLanes];
}

void FlushCoefficients(SpectralTally& tally, int frame, SpectralSums& sums) {
  std::size_t at = 0;
  for (int ky = 0; ky < frame; ++ky) {
    for (int kx = 0; kx <= frame / 2; ++kx, ++at) {
      sums.coefficient_q[at] += CoefficientAt(tally.coefficient_q, tally.edge_q, frame, ky, kx);
      sums.coefficient_qq[at] += CoefficientAt(tally.coefficient_qq, tally.edge_qq, frame, ky, kx);
    }
  }
  tally.coefficient_q.assign(tally.coefficient_q.size(), IntegerBlock{});
  tally.coefficient_qq.assign(tally.coefficient_qq.size(), WideBlock{});
  tally.edge_q.assign(tally.edge_q.size(), 0);
  tally.edge_qq.assign(tally.edge_qq.size(), 0);
}

}  // namespace

int RingOf(std::int64_t square) {
  return static_cast<int>(std::lrint(std::sqrt(static_cast<double>(square))));
}

SpectralTally::SpectralTally(const plan::SpectralOptions& options)
    : twice(kHistogramCopies * kSpectralBins),
      once(kSpectralBins),
      rings(Groups(options) * static_cast<std::size_t>(options.frame / 2 + 1)),
      edge_rings(2 * static_cast<std::size_t>(EdgeRow(options.frame))) {
  if (!options.coefficients) return;
  coefficient_q.resize(Groups(options) * static_cast<std::size_t>(options.frame));
  coefficient_qq.resize(coefficient_q.size());
  edge_q.resize(edge_rings.size());
  edge_qq.resize(edge_rings.size());
}

SpectralWork::SpectralWork(const plan::SpectralOptions& options)
    : frame(options.frame), tally(options) {
  const auto n = static_cast<std::size_t>(frame);
  const std::vector<Root> roots = RootsOf(frame);
  const int a = FirstFactor(frame), b = frame / a;
  for (int k1 = 0; k1 < a; ++k1) {
    for (int n2 = 0; n2 < b; ++n2) {
      const Root& root = roots[static_cast<std::size_t>(k1 * n2)];
      twiddle.push_back(static_cast<float>(root.cosine));
      twiddle.push_back(static_cast<float>(root.sine));
    }
  }
  for (const Root& root : roots) {
    const bool hann = options.window == plan::SpectralWindow::kHann;
    window.push_back(hann ? static_cast<float>(0.5 - 0.5 * root.cosine) : 1.0F);
    column_weight.push_back(0.5F * window.back());
  }
  for (int g = 0; g < frame / kSpectralColumns; ++g) ring_limit.push_back(LastRingColumn(frame, g));
  if (plan::SpectralHalo(options) > 0) rows.resize(2 * (n + 2 * plan::kGauss7Radius));
  columns.resize(2 * (n + static_cast<std::size_t>(a)));
  plane.resize(Groups(options) * 2 * (n + n / kSpectralLanes));
  column_sum.resize(n);
  column_mean.resize(n);
  scratch.resize(columns.size());
  power.resize(n);
  edge_power.resize(2 * static_cast<std::size_t>(EdgeRow(frame) / kSpectralLanes));
}

void Flush(SpectralTally& tally, SpectralSums& sums) {
  if (tally.frames == 0) return;
  const int frame = 2 * (static_cast<int>(sums.ring_power.size()) - 1);
  sums.frames += std::exchange(tally.frames, 0);
  sums.sum_q += 2 * absl::uint128(std::exchange(tally.twice_q, 0)) + std::exchange(tally.once_q, 0);
  sums.sum_qq += 2 * std::exchange(tally.twice_qq, 0) + std::exchange(tally.once_qq, 0);
  FlushHistogram(tally, sums);
  FlushRings(tally, frame, sums);
  tally.ring_bound = 0;
  if (!tally.coefficient_q.empty()) FlushCoefficients(tally, frame, sums);
}

}  // namespace patchbay::ops
