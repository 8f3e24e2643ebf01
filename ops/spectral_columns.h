// The first half of a frame's transform: from pixels to transformed columns, which frames that
// overlap sideways share; for every vector width V. Include after the target pragma of a variant.
// A part of spectral.
#pragma once

#include "ops/spectral_fft.h"

namespace patchbay::ops {

/// The weights of gauss7 from the centre out: exp(-k^2 / 4.5), normalised to sum 1.
inline constexpr float kGauss7[4] = {0.27068223F, 0.21674531F, 0.11128076F, 0.03663285F};

template <typename V>
PB_INLINE void SumColumns(const float* row, double* sums) {
  for (int i = 0; i < kSpectralColumns; i += V::kLanes) V::Load(row + i).AddTo(sums + i);
}

/// Columns of later blocks are fetched meanwhile: rows lie far apart, which no machine foresees.
inline constexpr int kAhead = 64;

/// Pixels as floats, a row of kSpectralColumns each, and the exact sum of each column.
template <typename V, int frame>
PB_INLINE void TakePixels(const ColumnBlock& block, float* out, double* sums) {
  V total[kSpectralColumns / V::kLanes];
  for (V& part : total) part = V::All(0);
  for (int r = 0; r < frame; ++r) {
    const std::uint8_t* row = block.pixels + r * block.row_bytes;
    __builtin_prefetch(row + kAhead);
    for (int i = 0; i < kSpectralColumns / V::kLanes; ++i) {
      const V x = V::LoadBytes(row + i * V::kLanes);
      total[i] = total[i] + x;  // whole numbers below 2^24
      x.Store(out + PlaceOfPoint<frame>(r) * kSpectralColumns + i * V::kLanes);
    }
  }
  for (int i = 0; i < kSpectralColumns / V::kLanes; ++i) total[i].AddTo(sums + i * V::kLanes);
}

/// center + pairs, from the outermost in.
template <typename V>
PB_INLINE V Weighted(V center, V one, V two, V three) {
  const V far = FusedAdd(two, V::All(kGauss7[2]), three * V::All(kGauss7[3]));
  return FusedAdd(center, V::All(kGauss7[0]), FusedAdd(one, V::All(kGauss7[1]), far));
}

/// A whole number near the block's mean.
template <typename V, int frame>
PB_INLINE float CenterOf(const ColumnBlock& block) {
  constexpr int kStep = 8;  // rows from one looked at to the next
  V total = V::All(0);
  for (int r = 0; r < frame; r += kStep) {
    const std::uint8_t* row = block.pixels + r * block.row_bytes;
    for (int i = 0; i < kSpectralColumns; i += V::kLanes) total = total + V::LoadBytes(row + i);
  }
  double part[V::kLanes] = {}, sum = 0;
  total.AddTo(part);
  for (const double x : part) sum += x;
  return static_cast<float>(static_cast<int>(sum / (frame / kStep * kSpectralColumns)));
}

/// gauss7 of the pixels less `center`, so that little is rounded off: along the rows into `rows`,
/// then down the columns. The sums are of what is left.
template <typename V, int frame>
PB_INLINE void TakeFiltered(const ColumnBlock& block, float center, float* rows, float* out,
                            double* sums) {
  const V c = V::All(center), pair = V::All(2 * center);
  for (int r = 0; r < frame + 2 * kGauss7Radius; ++r) {
    const std::uint8_t* row = block.pixels + r * block.row_bytes;
    for (int i = 0; i < kSpectralColumns; i += V::kLanes) {
      const auto x = [&](int k) PB_INLINED { return V::LoadBytes(row + i + k); };
      Weighted(x(3) - c, x(2) + x(4) - pair, x(1) + x(5) - pair, x(0) + x(6) - pair)
          .Store(rows + r * kSpectralColumns + i);
    }
  }
  for (int r = 0; r < frame; ++r) {
    const float* row = rows + r * kSpectralColumns;
    float* result = out + PlaceOfPoint<frame>(r) * kSpectralColumns;
    for (int i = 0; i < kSpectralColumns; i += V::kLanes) {
      const auto x = [&](int k) PB_INLINED { return V::Load(row + k * kSpectralColumns + i); };
      Weighted(x(3), x(2) + x(4), x(1) + x(5), x(0) + x(6)).Store(result + i);
    }
    SumColumns<V>(result, sums);
  }
}

/// Takes two real columns' transforms apart, for 16 ky, and writes them with ky along the lanes.
template <typename V, int frame>
PB_INLINE void SplitColumns(const float* in, int group, float* plane, int slot) {
  alignas(64) float part[4][kSpectralLanes][kSpectralLanes];  // re, im of the left; of the right
  for (int l = 0; l < kSpectralLanes; ++l) {
    const int k = group * kSpectralLanes + l;
    const float* at = in + PlaceOf<frame>(k) * kSpectralColumns;
    const float* mirror = in + PlaceOf<frame>((frame - k) % frame) * kSpectralColumns;
    for (int i = 0; i < kSpectralLanes; i += V::kLanes) {
      const auto z = LoadComplex<V>(at + i), y = LoadComplex<V>(mirror + i);
      (z.re + y.re).Store(&part[0][l][i]);
      (z.im - y.im).Store(&part[1][l][i]);
      (z.im + y.im).Store(&part[2][l][i]);
      (y.re - z.re).Store(&part[3][l][i]);
    }
  }
  if (group == 0) {  // row 0 is real; so is row frame / 2, which rides as its imaginary part
    const float* last = in + PlaceOf<frame>(frame / 2) * kSpectralColumns;
    for (int i = 0; i < kSpectralLanes; ++i) {
      part[1][0][i] = 2 * last[i];
      part[3][0][i] = 2 * last[kSpectralLanes + i];
    }
  }
  float* out = plane + (group * PlaceOfSlot(frame) + PlaceOfSlot(slot)) * kSpectralColumns;
  V::Transpose(&part[0][0][0], out, kSpectralColumns);
  V::Transpose(&part[1][0][0], out + kSpectralLanes, kSpectralColumns);
  out += PlaceOfSlot(kSpectralLanes) * kSpectralColumns;
  V::Transpose(&part[2][0][0], out, kSpectralColumns);
  V::Transpose(&part[3][0][0], out + kSpectralLanes, kSpectralColumns);
}

template <typename V, int frame>
void TransformColumns(SpectralWork& work, const ColumnBlock& block) {
  float* columns = work.columns[0].lane;
  double sums[kSpectralColumns] = {};
  float center = 0;
  if (block.gauss7) {
    center = CenterOf<V, frame>(block);
    TakeFiltered<V, frame>(block, center, work.rows[0].lane, columns, sums);
  } else {
    TakePixels<V, frame>(block, columns, sums);
  }
  alignas(64) float means[kSpectralColumns];
  for (int c = 0; c < kSpectralColumns; ++c) {
    means[c] = static_cast<float>(sums[c] / frame);
    const auto slot = static_cast<std::size_t>(block.slot + c);
    work.column_sum[slot] = sums[c] + double{center} * frame;
    work.column_mean[slot] = double{center} + double{means[c]};
  }
  const float* weight = work.column_weight.data();
  for (int i = 0; i < kSpectralLanes; i += V::kLanes) {
    const auto mean = LoadComplex<V>(means + i);
    FirstStep<V, frame>(work.twiddle.data(), columns + i, [&](int n) PB_INLINED {
      const auto z = LoadComplex<V>(columns + PlaceOfPoint<frame>(n) * kSpectralColumns + i);
      const V w = V::All(weight[n]);
      return Complex<V>{(z.re - mean.re) * w, (z.im - mean.im) * w};
    });
    SecondStep<V, frame>(columns + i, [&](int k, const Complex<V>& z) PB_INLINED {
      StoreComplex(z, columns + PlaceOf<frame>(k) * kSpectralColumns + i);
    });
  }
  for (int g = 0; g < frame / kSpectralColumns; ++g) {
    SplitColumns<V, frame>(columns, g, work.plane[0].lane, block.slot);
  }
}

}  // namespace patchbay::ops
