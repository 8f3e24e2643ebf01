// The columns pass: transformed rows to counts. A block keeps to one tile of columns, and its
// counts to itself until it is done with its frames. A part of spectral.
#pragma once

#include "ops/spectral/spectral_passes.h"

namespace patchbay::ops::spectral_passes {

struct ColumnsShared {
  /// [s][k][column of the tile]; then the powers, [ky][column], over `re`.
  PointExchange points;
  std::uint32_t histogram[kHistogramsOfBlock][kPassBins];
  ComplexFloat twiddle[256];
  float window[kGpuFrame];
  std::int64_t part[kGpuFrame];  ///< parts of the frame's sum, and offsets of its rows
  std::int32_t offset[kGpuFrame];
  std::uint64_t total_q[kPoints], total_qq[kPoints];  ///< counts of a block's threads
};

template <bool coefficients>
struct ColumnsState {
  ComplexFloat z[kPoints];
  std::uint64_t q = 0, qq = 0, ring_low = 0, ring_high = 0;
  std::uint32_t point_q[coefficients ? kPoints : 1] = {};
  std::uint64_t point_qq[coefficients ? kPoints : 1] = {};
};

/// A frame's place in the spectra: the first of its rows.
PB_DEVICE_CODE std::int64_t RowPlace(const ColumnsPass& pass, std::uint32_t frame, int row) {
  const std::int64_t first = static_cast<std::int64_t>(frame >> 16) * pass.hop;
  return (first + row) * pass.columns + (frame & 0xFFFF);
}

/// The sum of a frame, from the parts of 16 threads.
PB_DEVICE_CODE std::int64_t FrameSum(const ColumnsShared& sm) {
  std::int64_t sum = 0;
  for (int i = 0; i < kPoints; ++i) sum += sm.part[i * kPoints];
  return sum;
}

/// The row's offset less the frame's mean, rounded once.
PB_DEVICE_CODE float AboveMean(const ColumnsPass& pass, const ColumnsShared& sm, std::int64_t sum,
                               int row) {
  const std::int64_t one = std::int64_t{1} << (16 + pass.sum_bits);
  return static_cast<float>(static_cast<double>(sm.offset[row] * one - sum) *
                            (1.0 / static_cast<double>(one)));
}

/// Thread (c, s) loads its part of a column: points 16 m + s of a frame's transformed rows.
template <bool coefficients>
PB_DEVICE_CODE void LoadColumn(const ColumnsPass& pass, int tile, int item, int t,
                               ColumnsState<coefficients>& state, ColumnsShared& sm) {
  const int c = t % kPoints, s = t / kPoints;
  const bool edge = tile == kEdgeTile;
  const int index = edge ? item * kPoints + c : item;
  const int kx = edge ? 0 : tile * kPoints + c;
  const bool active = index < pass.frames;
  const std::uint32_t frame = active ? pass.d_frames[index] : 0;
  const bool hann = pass.d_window != nullptr;
  // A constant, put back, is seen by kx 0 and, through Hann's window, by its neighbour.
  const float constant = tile != 0         ? 0.0F
                         : kx == 0         ? (hann ? 128.0F : 256.0F)
                         : kx == 1 && hann ? -64.0F
                                           : 0.0F;
  const std::int64_t sum = constant != 0 ? FrameSum(sm) : 0;
  const ComplexFloat* d_column = pass.d_spectra + RowPlace(pass, frame, s) * kGpuHalf + kx;
  const std::int64_t step = static_cast<std::int64_t>(kPoints * kGpuHalf) * pass.columns;
  PB_UNROLL for (int m = 0; m < kPoints; ++m) {
    const int row = kPoints * m + s;
    ComplexFloat z = {0, 0};
    if (active) z = d_column[m * step];
    if (kx == 0) z = {edge ? z.im : z.re, 0};
    if (constant != 0) z.re = fmaf(constant, AboveMean(pass, sm, sum, row), z.re);
    if (hann) z = {z.re * sm.window[row], z.im * sm.window[row]};
    state.z[m] = z;
  }
  FirstHalf(state.z, sm.twiddle, s, [&](int k, ComplexFloat point) {
    const int at = s * kTransformPitch + k * kPoints + c;
    sm.points.re[at] = point.re;
    sm.points.im[at] = point.im;
  });
}

/// X[0,0]: the frame's sum, weighted.
PB_DEVICE_CODE float OriginOf(const ColumnsPass& pass, const ColumnsShared& sm, float transformed) {
  const double sum =
      static_cast<double>(FrameSum(sm)) / static_cast<double>(std::int64_t{1} << pass.sum_bits);
  if (pass.d_window == nullptr) return static_cast<float>(sum);
  return static_cast<float>(sum / 4 + static_cast<double>(transformed));
}

/// Thread (c, k1) counts coefficients ky = k1 + 16 k2 of its column.
template <bool coefficients, typename Block>
PB_DEVICE_CODE void CountColumn(Block& block, const ColumnsPass& pass, int tile, int item, int t,
                                ColumnsState<coefficients>& state, ColumnsShared& sm) {
  const int c = t % kPoints, k1 = t / kPoints;
  const bool once = tile == kEdgeTile || (tile == 0 && c == 0);
  const float weight = once ? 1.0F : 2.0F;
  const bool active = tile != kEdgeTile || item * kPoints + c < pass.frames;
  std::uint32_t sum = 0;
  PB_UNROLL for (int k2 = 0; k2 < kPoints; ++k2) {
    ComplexFloat z = state.z[Dft16Place(k2)];
    if (k2 == 0 && t == 0 && tile == 0) z = {OriginOf(pass, sm, z.re), 0};
    const float power = fmaf(z.re, z.re, z.im * z.im);
    sm.points.re[(k1 + kPoints * k2) * kPoints + c] = power * weight;
    if (!active) continue;
    const std::uint32_t q = StepsOfPower(power);
    sum += q;
    state.qq += static_cast<std::uint64_t>(q) * q;
    block.Add(&sm.histogram[t % kHistogramsOfBlock][q / kPassStepsPerBin], once ? 1u : 2u);
    if constexpr (coefficients) {
      state.point_q[k2] += q;
      state.point_qq[k2] += static_cast<std::uint64_t>(q) * q;
    }
  }
  state.q += sum;
}

/// A thread's part of one ring of this tile, in one fixed order, rounded once.
template <bool coefficients>
PB_DEVICE_CODE void AddRing(const ColumnsPass& pass, int tile, int t,
                            ColumnsState<coefficients>& state, const ColumnsShared& sm) {
  const int count = pass.d_rings->count[tile][t];
  double power = 0;
  for (int i = 0; i < count; ++i) {
    power += static_cast<double>(sm.points.re[pass.d_rings->entry[tile][i][t]]);
  }
  const auto scaled = static_cast<std::uint64_t>(rint(power * (1 << kPassRingBits)));
  state.ring_low += scaled & 0xFFFFFFFFu;
  state.ring_high += scaled >> 32;
}

/// Counts one tile of one frame; the edge tile of 16 frames at once.
template <bool coefficients, typename Block>
PB_DEVICE_CODE void CountTile(Block& block, const ColumnsPass& pass, int tile, int item,
                              ColumnsShared& sm) {
  using State = ColumnsState<coefficients>;
  if (tile == 0) {
    block.Phase([&](int t, State&) {
      const RowSum row = pass.d_sums[RowPlace(pass, pass.d_frames[item], t)];
      sm.part[t] = row.sum;
      sm.offset[t] = row.offset;
    });
    block.Phase([&](int t, State&) {
      if (t % kPoints != 0) return;
      std::int64_t sum = 0;
      for (int i = 0; i < kPoints; ++i) sum += sm.part[t + i];
      sm.part[t] = sum;
    });
  }
  block.Phase([&](int t, State& state) { LoadColumn(pass, tile, item, t, state, sm); });
  block.Phase([&](int t, State& state) {
    const int at = t / kPoints * kPoints + t % kPoints;
    PB_UNROLL for (int s = 0; s < kPoints; ++s) {
      state.z[s] = {sm.points.re[at + s * kTransformPitch], sm.points.im[at + s * kTransformPitch]};
    }
  });
  block.Phase([&](int t, State& state) {
    Dft16(state.z);
    CountColumn(block, pass, tile, item, t, state, sm);
  });
  block.Phase([&](int t, State& state) { AddRing(pass, tile, t, state, sm); });
}

/// 16 threads each add up 16 parts.
PB_DEVICE_CODE void SumParts(int t, const std::int64_t* part, std::uint64_t* total) {
  if (t >= kPoints) return;
  std::uint64_t sum = 0;
  for (int i = 0; i < kPoints; ++i) sum += static_cast<std::uint64_t>(part[t * kPoints + i]);
  total[t] = sum;
}

/// A block's counters into the tally.
template <bool coefficients, typename Block>
PB_DEVICE_CODE void FlushColumns(Block& block, const ColumnsPass& pass, int tile,
                                 ColumnsShared& sm) {
  using State = ColumnsState<coefficients>;
  const auto once = [&](int t) { return tile == kEdgeTile || (tile == 0 && t % kPoints == 0); };
  block.Phase([&](int t, State& state) {
    sm.part[t] = static_cast<std::int64_t>(state.q * (once(t) ? 1 : 2));
    if (pass.d_rings->count[tile][t] != 0) {
      const int ring = pass.d_rings->ring[tile][t];
      block.Add(&pass.d_tally->ring_low[ring], state.ring_low);
      block.Add(&pass.d_tally->ring_high[ring], state.ring_high);
    }
    if constexpr (coefficients) {
      const int kx = tile == kEdgeTile ? kGpuHalf : tile * kPoints + t % kPoints;
      PB_UNROLL for (int k2 = 0; k2 < kPoints; ++k2) {
        const int at = (t / kPoints + kPoints * k2) * (kGpuHalf + 1) + kx;
        block.Add(&pass.d_coefficient_q[at], static_cast<std::uint64_t>(state.point_q[k2]));
        block.Add(&pass.d_coefficient_qq[at], state.point_qq[k2]);
      }
    }
    for (int bin = t; bin < kPassBins; bin += kPassThreads) {
      std::uint64_t count = 0;
      for (int copy = 0; copy < kHistogramsOfBlock; ++copy) count += sm.histogram[copy][bin];
      if (count != 0) block.Add(&pass.d_tally->histogram[bin], count);
    }
  });
  block.Phase([&](int t, State&) { SumParts(t, sm.part, sm.total_q); });
  block.Phase([&](int t, State& state) {
    sm.part[t] = static_cast<std::int64_t>(state.qq * (once(t) ? 1 : 2));
  });
  block.Phase([&](int t, State&) { SumParts(t, sm.part, sm.total_qq); });
  block.Phase([&](int t, State&) {
    if (t != 0) return;
    std::uint64_t q = 0, qq = 0;
    for (int i = 0; i < kPoints; ++i) {
      q += sm.total_q[i];
      qq += sm.total_qq[i];
    }
    block.Add(&pass.d_tally->sum_q, q);
    block.Add(&pass.d_tally->sum_qq_low, qq & 0xFFFFFFFFu);
    block.Add(&pass.d_tally->sum_qq_high, qq >> 32);
  });
}

/// Items `first`, `first` + `step`, ... of one tile: frames, or groups of 16 for the edge tile.
template <bool coefficients, typename Block>
PB_DEVICE_CODE void CountColumns(Block& block, const ColumnsPass& pass, int tile, int first,
                                 int step, ColumnsShared& sm) {
  block.Phase([&](int t, ColumnsState<coefficients>&) {
    sm.twiddle[t] = pass.d_twiddle[t];
    if (pass.d_window != nullptr) sm.window[t] = pass.d_window[t];
    for (int copy = 0; copy < kHistogramsOfBlock; ++copy) {
      for (int bin = t; bin < kPassBins; bin += kPassThreads) sm.histogram[copy][bin] = 0;
    }
  });
  const int items = tile == kEdgeTile ? (pass.frames + kPoints - 1) / kPoints : pass.frames;
  for (int item = first; item < items; item += step) {
    CountTile<coefficients>(block, pass, tile, item, sm);
  }
  FlushColumns<coefficients>(block, pass, tile, sm);
}

}  // namespace patchbay::ops::spectral_passes
