// The second half of a frame's transform, and its counts; the spectrum never leaves the first-level
// cache. For every vector width V. Include after the target pragma of a variant. A part of
// spectral.
#pragma once

#include "ops/spectral/spectral_fft.h"

namespace patchbay::ops {

/// 1024 * 20 log10 of sqrt(power), at least 0, to the nearest whole number. The logarithm's error
/// is below 5e-5 dB, one twentieth of a step.
template <typename V>
PB_INLINE typename V::Whole StepsOf(V power) {
  // 10 log10(2) * 1024, and that times log2(1 + t) / t around 0.
  constexpr float kOctave = 3082.5471F;
  constexpr float kTerm[5] = {4446.81494F, -2220.1792F, 1500.23303F, -1216.29724F, 778.837219F};
  using Whole = typename V::Whole;
  const Whole bits = Whole::BitsOf(Max(power, V::All(1))) - Whole::All(0x3F3504F3);  // sqrt(1/2)
  const Whole exponent = bits.RightSigned(23);
  const Whole mantissa = bits - exponent.Left(23) + Whole::All(0x3F3504F3);
  const V t = mantissa.AsBits() - V::All(1);
  V sum = V::All(kTerm[4]);
  sum = FusedAdd(sum, t, V::All(kTerm[3]));
  sum = FusedAdd(sum, t, V::All(kTerm[2]));
  sum = FusedAdd(sum, t, V::All(kTerm[1]));
  sum = FusedAdd(sum, t, V::All(kTerm[0]));
  return Whole::Nearest(FusedAdd(sum, t, exponent.ToFloat() * V::All(kOctave)));
}

PB_INLINE void CountBins(const std::uint16_t* bins, std::uint32_t* histogram) {
  Unrolled<kSpectralLanes>([&](auto lane) PB_INLINED {
    constexpr std::size_t l = decltype(lane)::value;
    ++(histogram + l % kHistogramCopies * kSpectralBins)[std::size_t{bins[l]}];
  });
}

/// Counts `blocks` x 16 powers. Sums per lane fit 32 bits: a group has at most 8,192 powers and q
/// is below 2^17.3.
template <typename V, bool coefficients>
void CountPowers(const float* power, int blocks, SpectralTally& tally, IntegerBlock* coefficient_q,
                 WideBlock* coefficient_qq) {
  using Whole = typename V::Whole;
  // Increments wait for bins through memory: meanwhile the next logarithms are under way.
  constexpr int kLag = 8;
  alignas(64) std::uint16_t bins[plan::kMaxSpectralFrame * kSpectralLanes];
  Whole sum = Whole::All(0);
  auto squares = NoSquares(V());
  std::uint32_t* const histogram = tally.twice.data();
  for (int i = 0; i < blocks; ++i) {
    for (int l = 0; l < kSpectralLanes; l += V::kLanes) {
      const Whole q = StepsOf(V::Load(power + i * kSpectralLanes + l));
      sum = sum + q;
      squares.Add(q);
      StoreShort(q.RightSigned(kBinShift), bins + i * kSpectralLanes + l);
      if constexpr (coefficients) {
        AddTo(q, coefficient_q[i].lane + l);
        AddSquaresTo(q, coefficient_qq[i].lane + l);
      }
    }
    if (i >= kLag) CountBins(bins + (i - kLag) * kSpectralLanes, histogram);
  }
  for (int i = blocks - kLag; i < blocks; ++i) CountBins(bins + i * kSpectralLanes, histogram);
  tally.twice_q += sum.Total();
  tally.twice_qq += squares.Total();
}

/// Adds a group's powers at kx and -kx to the counter of |kx|; `last` is the last kx with a ring.
template <typename V, int frame>
PB_INLINE V AddRings(const float* power, int last, WideBlock* rings, V largest) {
  const V scale = V::All(1 << kRingFractionBits);
  for (int i = 0; i < kSpectralLanes; i += V::kLanes) {
    const V first = V::Load(power + i) * scale;
    AddRoundedTo(first, rings[0].lane + i);
    largest = Max(largest, first);
    const int inner = last < frame / 2 ? last : frame / 2 - 1;
    for (int kx = 1; kx <= inner; ++kx) {
      const V both = V::Load(power + kx * kSpectralLanes + i) +
                     V::Load(power + (frame - kx) * kSpectralLanes + i);
      AddRoundedTo(both * scale, rings[kx].lane + i);
      largest = Max(largest, both * scale);
    }
    if (last == frame / 2) {
      const V middle = V::Load(power + last * kSpectralLanes + i) * scale;
      AddRoundedTo(middle, rings[last].lane + i);
      largest = Max(largest, middle);
    }
  }
  return largest;
}

/// Counts rows 0 and frame / 2. `packed` is the transform of the first plus i times the second.
template <typename V, int frame>
PB_INLINE V CountEdges(SpectralWork& work, const float (&packed)[2][frame], float origin,
                       V largest) {
  constexpr int kHalf = frame / 2, kRow = EdgeRow(frame);
  float* const power = work.edge_power[0].lane;
  SpectralTally& tally = work.tally;
  for (int k = 0; k <= kHalf; ++k) {
    const int mirror = (frame - k) % frame;
    const float a = packed[0][k], b = packed[1][k], c = packed[0][mirror], d = packed[1][mirror];
    const float re0 = 0.5F * (a + c), im0 = 0.5F * (b - d);
    const float re1 = 0.5F * (b + d), im1 = 0.5F * (c - a);
    power[k] = __builtin_fmaf(re0, re0, im0 * im0);
    power[kRow + k] = __builtin_fmaf(re1, re1, im1 * im1);
  }
  power[0] = 0;  // the mean has no ring
  alignas(64) std::uint32_t q[2 * kRow];
  const V scale = V::All(1 << kEdgeFractionBits);
  for (int i = 0; i < 2 * kRow; i += V::kLanes) {
    const V p = V::Load(power + i);
    StepsOf(p).Store(q + i);
    AddRoundedTo(p * scale, tally.edge_rings.data() + i);
    largest = Max(largest, p * scale);
  }
  alignas(64) float first[kSpectralLanes] = {origin * origin};
  alignas(64) std::uint32_t first_q[kSpectralLanes];
  StepsOf(V::Load(first)).Store(first_q);
  q[0] = first_q[0];
  for (int row = 0; row < 2; ++row) {
    for (int k = 0; k <= kHalf; ++k) {
      const std::uint64_t step = q[row * kRow + k], square = step * step;
      const bool once = k == 0 || k == kHalf;
      (once ? tally.once_q : tally.twice_q) += step;
      (once ? tally.once_qq : tally.twice_qq) += square;
      ++(once ? tally.once : tally.twice)[step / kBinSteps];
      if (!tally.edge_q.empty()) {
        tally.edge_q[static_cast<std::size_t>(row * kRow + k)] += step;
        tally.edge_qq[static_cast<std::size_t>(row * kRow + k)] += square;
      }
    }
  }
  return largest;
}

/// The frame's mean, and the difference of each column's mean to it.
template <typename V, int frame>
PB_INLINE double FrameMean(const SpectralWork& work, int start, float (&above)[frame]) {
  double part[8] = {};
  for (int n = 0; n < frame; ++n) {
    part[n % 8] += work.column_sum[static_cast<std::size_t>((start + n) & (frame - 1))];
  }
  const double sum =
      ((part[0] + part[4]) + (part[2] + part[6])) + ((part[1] + part[5]) + (part[3] + part[7]));
  const double mean = sum / (frame * frame);
  for (int n = 0; n < frame; ++n) {
    const double column = work.column_mean[static_cast<std::size_t>((start + n) & (frame - 1))];
    above[n] = static_cast<float>(column - mean);
  }
  return mean;
}

/// The transform of the window at ky = 0, 1, ...: the contribution of a constant to a column.
template <int frame, bool hann>
inline constexpr FloatBlock kConstantColumn =
    hann ? FloatBlock{{frame / 2, -(frame / 4)}} : FloatBlock{{frame}};

template <typename V, int frame, bool hann>
void CountFrame(SpectralWork& work, int start) {
  constexpr int kGroups = frame / kSpectralColumns,
                kGroupFloats = PlaceOfSlot(frame) * kSpectralColumns;
  float* const scratch = work.scratch[0].lane;
  float* const power = work.power[0].lane;
  const float* const window = work.window.data();
  float packed[2][frame];
  float above[frame];
  const double mean = FrameMean<V, frame>(work, start, above);
  V largest = V::All(0);
  for (int g = 0; g < kGroups; ++g) {
    const float* plane = work.plane[0].lane + g * kGroupFloats;
    for (int i = 0; i < kSpectralLanes; i += V::kLanes) {
      const V share = V::Load(kConstantColumn<frame, hann>.lane + i);
      FirstStep<V, frame>(work.twiddle.data(), scratch + i, [&](int n) PB_INLINED {
        const int slot = (start + n) & (frame - 1);
        auto z = LoadComplex<V>(plane + PlaceOfSlot(slot) * kSpectralColumns + i);
        if (g == 0) z.re = FusedAdd(share, V::All(above[n]), z.re);
        if constexpr (hann) {
          const V w = V::All(window[n]);
          z = {z.re * w, z.im * w};
        }
        return z;
      });
      SecondStep<V, frame>(scratch + i, [&](int k, const Complex<V>& z) PB_INLINED {
        FusedAdd(z.re, z.re, z.im * z.im).Store(power + k * kSpectralLanes + i);
        if (g == 0 && i == 0) {
          packed[0][k] = FirstOf(z.re);
          packed[1][k] = FirstOf(z.im);
        }
      });
    }
    if (g == 0) {
      for (int k = 0; k < frame; ++k) power[k * kSpectralLanes] = 0;
    }
    const std::size_t rings = static_cast<std::size_t>(g * (frame / 2 + 1));
    largest = AddRings<V, frame>(power, work.ring_limit[static_cast<std::size_t>(g)],
                                 &work.tally.rings[rings], largest);
    if (work.tally.coefficient_q.empty()) {
      CountPowers<V, false>(power, frame, work.tally, nullptr, nullptr);
    } else {
      const auto at = static_cast<std::size_t>(g * frame);
      CountPowers<V, true>(power, frame, work.tally, &work.tally.coefficient_q[at],
                           &work.tally.coefficient_qq[at]);
    }
  }
  work.tally.twice[0] -= frame;  // lane 0 of group 0: power 0, not a coefficient
  constexpr double kWeights = hann ? frame * frame / 4.0 : frame * frame;
  const double origin = mean * kWeights + (hann ? packed[0][0] : 0);
  largest = CountEdges<V, frame>(work, packed, static_cast<float>(origin), largest);
  work.tally.ring_bound += static_cast<double>(LargestOf(largest));
  ++work.tally.frames;
}

}  // namespace patchbay::ops
