// The first half of a frame's transform: from pixels to transformed columns, which frames that
// overlap sideways share; for every vector width V. Include after the target pragma of a variant.
// A part of spectral.
#pragma once

#include "ops/spectral/spectral_fft.h"

namespace patchbay::ops {

/// The weights of gauss7 from the centre out: exp(-k^2 / 4.5), normalised to sum 1.
inline constexpr float kGauss7[4] = {0.27068223F, 0.21674531F, 0.11128076F, 0.03663285F};

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
  for (int i = 0; i < kSpectralColumns / V::kLanes; ++i) AddTo(total[i], sums + i * V::kLanes);
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
  AddTo(total, part);
  for (const double x : part) sum += x;
  return static_cast<float>(static_cast<int>(sum / (frame / kStep * kSpectralColumns)));
}

/// Columns that gauss7 reads, and rows that are made at a time.
inline constexpr int kWideColumns = kSpectralColumns + 2 * plan::kGauss7Radius, kChunk = 8;

/// Weighted neighbours of x[0] to x[6 * step].
template <typename V>
PB_INLINE V FilteredAt(const float* x, int step) {
  const auto at = [&](int k) PB_INLINED { return V::Load(x + k * step); };
  return Weighted(at(3), at(2) + at(4), at(1) + at(5), at(0) + at(6));
}

/// gauss7 along `count` rows, of the pixels less `center` so that little is rounded off.
template <typename V>
PB_INLINE void FilterRows(const std::uint8_t* pixels, std::int64_t row_bytes, int count,
                          float center, float* out) {
  alignas(64) float wide[kChunk][kSpectralColumns + kSpectralLanes];
  const V c = V::All(center);
  for (int r = 0; r < count; ++r) {
    const std::uint8_t* row = pixels + r * row_bytes;
    __builtin_prefetch(row + kAhead);
    for (int i = 0; i < kWideColumns; i += V::kLanes) {
      const int at = i <= kWideColumns - V::kLanes ? i : kWideColumns - V::kLanes;
      (V::LoadBytes(row + at) - c).Store(wide[r] + at);
    }
  }
  for (int r = 0; r < count; ++r) {
    for (int i = 0; i < kSpectralColumns; i += V::kLanes) {
      FilteredAt<V>(wide[r] + i, 1).Store(out + r * kSpectralColumns + i);
    }
  }
}

/// Applies gauss7 along the rows into `rows`, then down the columns, and sums the result.
template <typename V, int frame>
PB_INLINE void TakeFiltered(const ColumnBlock& block, float center, float* rows, float* out,
                            double* sums) {
  constexpr int kRows = frame + 2 * plan::kGauss7Radius;
  for (int r = 0; r < kRows; r += kChunk) {
    FilterRows<V>(block.pixels + r * block.row_bytes, block.row_bytes,
                  r + kChunk <= kRows ? kChunk : kRows - r, center, rows + r * kSpectralColumns);
  }
  for (int i = 0; i < kSpectralColumns; i += V::kLanes) {
    for (int r = 0; r < frame; r += kChunk) {
      V total = V::All(0);  // sum of a few rows in float; that of all is in double
      for (int k = r; k < r + kChunk; ++k) {
        const V x = FilteredAt<V>(rows + k * kSpectralColumns + i, kSpectralColumns);
        x.Store(out + PlaceOfPoint<frame>(k) * kSpectralColumns + i);
        total = total + x;
      }
      AddTo(total, sums + i);
    }
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
  Transpose(V(), &part[0][0][0], out, kSpectralColumns);
  Transpose(V(), &part[1][0][0], out + kSpectralLanes, kSpectralColumns);
  out += PlaceOfSlot(kSpectralLanes) * kSpectralColumns;
  Transpose(V(), &part[2][0][0], out, kSpectralColumns);
  Transpose(V(), &part[3][0][0], out + kSpectralLanes, kSpectralColumns);
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
