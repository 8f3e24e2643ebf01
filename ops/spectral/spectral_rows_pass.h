// The rows pass: pixels to transformed rows. Two rows are one complex transform. A part of
// spectral.
#pragma once

#include "ops/spectral/spectral_passes.h"

namespace patchbay::ops::spectral_passes {

template <bool gauss7>
struct RowsShared {
  PointExchange points;
  ComplexFloat twiddle[256];
  std::int32_t sums[kPoints][kPoints][2];
  std::int32_t fine_sums[kPoints][gauss7 ? kPoints : 1][2];
  std::int32_t filtered[gauss7 ? kStripRows * kStripPitch : 1];  ///< down the columns, less 128
  std::uint8_t grey[(kStripRows + (gauss7 ? 2 * kPassRadius : 0)) * kStripPitch];
};

struct RowsState {
  ComplexFloat z[kPoints];  ///< re of the upper row, im of the lower
};

/// A strip of one group of frames, in the terms of a block.
struct StripShape {
  int first_row;     ///< row of the pass
  int first_frame;   ///< frame of the pass
  int frames, jobs;  ///< jobs: transforms of a pair of rows
};

PB_DEVICE_CODE StripShape ShapeOfStrip(const RowsPass& pass, std::uint32_t item) {
  const int groups = (pass.columns + pass.strip_frames - 1) / pass.strip_frames;
  const int strip = static_cast<int>(item) / groups, group = static_cast<int>(item) % groups;
  StripShape shape;
  shape.first_row = strip * kStripRows;
  shape.first_frame = group * pass.strip_frames;
  const int left = pass.columns - shape.first_frame;
  shape.frames = left < pass.strip_frames ? left : pass.strip_frames;
  shape.jobs = shape.frames * kStripPairs;
  return shape;
}

PB_DEVICE_CODE std::uint8_t ValueAt(const PassPixels& from, std::int64_t y, std::int64_t x) {
  const std::uint8_t* at =
      from.d_pixels + (y - from.top) * from.row_bytes + (x - from.left) * from.pixel_bytes;
  if (from.pixel_bytes == 1) return *at;
  if (from.component >= 0) return at[from.component];
  return static_cast<std::uint8_t>(GreyOf(at[0], at[1], at[2]));
}

/// Loads the strip's values, with the filter's margin, into shared memory.
template <bool gauss7>
PB_DEVICE_CODE void TakePixels(int t, const RowsPass& pass, const StripShape& shape,
                               RowsShared<gauss7>& sm) {
  constexpr int kMargin = gauss7 ? kPassRadius : 0;
  const int width = (shape.frames - 1) * pass.hop + kGpuFrame + 2 * kMargin;
  const std::int64_t left =
      pass.first_column + static_cast<std::int64_t>(shape.first_frame) * pass.hop - kMargin;
  for (int row = t / 32; row < kStripRows + 2 * kMargin; row += kPassWarps) {
    const int of_pass = shape.first_row + row - kMargin;
    if (of_pass >= pass.rows + kMargin) return;
    const std::int64_t y = Reflected(pass.first_row + of_pass, pass.pixels.image_height);
    for (int i = t % 32; i < width; i += 32) {
      const std::int64_t x = Reflected(left + i, pass.pixels.image_width);
      sm.grey[row * kStripPitch + i] = ValueAt(pass.pixels, y, x);
    }
  }
}

/// gauss7 down the columns, in whole numbers, so that nothing is rounded off; along the rows when a
/// point is loaded.
PB_DEVICE_CODE void FilterColumns(int t, const RowsPass& pass, const StripShape& shape,
                                  RowsShared<true>& sm) {
  const int width = (shape.frames - 1) * pass.hop + kGpuFrame + 2 * kPassRadius;
  const int left = pass.rows - shape.first_row;
  const int rows = left < kStripRows ? left : kStripRows;
  for (int i = t; i < width; i += kPassThreads) {
    std::int32_t v[7];
    PB_UNROLL for (int k = 0; k < 6; ++k) v[k] = sm.grey[k * kStripPitch + i] - kFilterCentre;
    for (int row = 0; row < rows; ++row) {
      v[6] = sm.grey[(row + 6) * kStripPitch + i] - kFilterCentre;
      sm.filtered[row * kStripPitch + i] = v[3] * kWholeCentre + (v[2] + v[4]) * kWholeOne +
                                           (v[1] + v[5]) * kWholeTwo + (v[0] + v[6]) * kWholeThree;
      PB_UNROLL for (int k = 0; k < 6; ++k) v[k] = v[k + 1];
    }
  }
}

/// The approximate value at a place, in steps of RowSum::sum; precise enough to choose an offset.
template <bool gauss7>
PB_DEVICE_CODE std::int32_t RoughSteps(const RowsShared<gauss7>& sm, int row, int column) {
  if constexpr (gauss7) {
    const std::int32_t v = sm.filtered[row * kStripPitch + column + kPassRadius];
    return (v >> (kWholeBits - kFilteredSumBits)) + (kFilterCentre << kFilteredSumBits);
  } else {
    return sm.grey[row * kStripPitch + column];
  }
}

/// The value at a place less `offset`. Under gauss7 all values are taken exactly relative to the
/// middle of the seven, so that the rounded ones are small.
template <bool gauss7>
PB_DEVICE_CODE float PointOf(const RowsShared<gauss7>& sm, int row, int column,
                             std::int32_t offset) {
  if constexpr (gauss7) {
    const std::int32_t* at = sm.filtered + row * kStripPitch + column;
    const std::int32_t twice = 2 * at[3];
    const auto bend = [&](int k) { return static_cast<float>(at[3 - k] + at[3 + k] - twice); };
    const float around = fmaf(bend(1), kGaussOne, fmaf(bend(2), kGaussTwo, bend(3) * kGaussThree));
    const std::int32_t middle = at[3] - (offset - kFilterCentre) * (1 << kWholeBits);
    return (static_cast<float>(middle) + around) * (1.0F / (1 << kWholeBits));
  } else {
    return static_cast<float>(sm.grey[row * kStripPitch + column] - offset);
  }
}

/// Partial sums of the pixels of two rows, from which the rows' offsets are chosen.
template <bool gauss7>
PB_DEVICE_CODE void SumPoints(int s, int transform, int pair, int column, RowsShared<gauss7>& sm) {
  std::int32_t upper = 0, lower = 0;
  PB_UNROLL for (int m = 0; m < kPoints; ++m) {
    upper += RoughSteps<gauss7>(sm, 2 * pair, column + kPoints * m + s);
    lower += RoughSteps<gauss7>(sm, 2 * pair + 1, column + kPoints * m + s);
  }
  sm.sums[transform][s][0] = upper;
  sm.sums[transform][s][1] = lower;
}

/// Points 16 m + s of two rows, less their offsets; under gauss7 also their sums.
template <bool gauss7>
PB_DEVICE_CODE void LoadPoints(int s, int transform, int pair, int column, RowSum upper,
                               RowSum lower, RowsState& state, RowsShared<gauss7>& sm) {
  std::int32_t fine_upper = 0, fine_lower = 0;
  PB_UNROLL for (int m = 0; m < kPoints; ++m) {
    const int at = column + kPoints * m + s;
    const ComplexFloat z = {PointOf<gauss7>(sm, 2 * pair, at, upper.offset),
                            PointOf<gauss7>(sm, 2 * pair + 1, at, lower.offset)};
    if constexpr (gauss7) {
      fine_upper += static_cast<std::int32_t>(rintf(z.re * (1 << kFilteredSumBits)));
      fine_lower += static_cast<std::int32_t>(rintf(z.im * (1 << kFilteredSumBits)));
    }
    state.z[m] = z;
  }
  if constexpr (gauss7) {
    sm.fine_sums[transform][s][0] = fine_upper;
    sm.fine_sums[transform][s][1] = fine_lower;
  }
}

/// A row's sum, and its mean as a whole number.
template <bool gauss7>
PB_DEVICE_CODE RowSum RoughSum(const RowsShared<gauss7>& sm, int transform, int row) {
  constexpr int kShift = 8 + (gauss7 ? kFilteredSumBits : 0);
  std::int32_t sum = 0;
  for (int s = 0; s < kPoints; ++s) sum += sm.sums[transform][s][row];
  return {sum, (sum + (1 << (kShift - 1))) >> kShift};
}

/// The sum of the loaded values.
template <bool gauss7>
PB_DEVICE_CODE RowSum FineSum(const RowsShared<gauss7>& sm, int transform, int row) {
  RowSum made = RoughSum<gauss7>(sm, transform, row);
  if constexpr (gauss7) {
    made.sum = made.offset * (kGpuFrame << kFilteredSumBits);
    for (int s = 0; s < kPoints; ++s) made.sum += sm.fine_sums[transform][s][row];
  }
  return made;
}

/// Takes two rows' transforms apart and writes them: coefficient kx of both.
PB_DEVICE_CODE void WriteRows(const RowsPass& pass, const PointExchange& points, int transform,
                              int kx, ComplexFloat* d_upper) {
  const float* re = points.re + transform * kTransformPitch;
  const float* im = points.im + transform * kTransformPitch;
  ComplexFloat* d_lower = d_upper + static_cast<std::int64_t>(pass.columns) * kGpuHalf;
  if (kx == 0) {
    d_upper[0] = {re[0], re[kGpuHalf]};
    d_lower[0] = {im[0], im[kGpuHalf]};
    return;
  }
  const int mirror = kGpuFrame - kx;
  d_upper[kx] = {0.5F * (re[kx] + re[mirror]), 0.5F * (im[kx] - im[mirror])};
  d_lower[kx] = {0.5F * (im[kx] + im[mirror]), 0.5F * (re[mirror] - re[kx])};
}

/// The transforms `first` to `first` + 15 of a strip.
template <bool gauss7, typename Block>
PB_DEVICE_CODE void TransformRows(Block& block, const RowsPass& pass, const StripShape& shape,
                                  int first, RowsShared<gauss7>& sm) {
  const auto pair_of = [&](int t) { return (first + t / kPoints) / shape.frames; };
  const auto frame_of = [&](int t) { return (first + t / kPoints) % shape.frames; };
  const auto active = [&](int t) {
    return first + t / kPoints < shape.jobs && shape.first_row + 2 * pair_of(t) < pass.rows;
  };
  const auto place = [&](int t) {
    return static_cast<std::int64_t>(shape.first_row + 2 * pair_of(t)) * pass.columns +
           shape.first_frame + frame_of(t);
  };
  block.Phase([&](int t, RowsState&) {
    if (!active(t)) return;
    SumPoints<gauss7>(t % kPoints, t / kPoints, pair_of(t), frame_of(t) * pass.hop, sm);
  });
  block.Phase([&](int t, RowsState& state) {
    if (!active(t)) return;
    const int s = t % kPoints, transform = t / kPoints;
    LoadPoints<gauss7>(s, transform, pair_of(t), frame_of(t) * pass.hop,
                       RoughSum<gauss7>(sm, transform, 0), RoughSum<gauss7>(sm, transform, 1),
                       state, sm);
    if (pass.d_window != nullptr) {
      PB_UNROLL for (int m = 0; m < kPoints; ++m) {
        const float w = pass.d_window[kPoints * m + s];
        state.z[m] = {state.z[m].re * w, state.z[m].im * w};
      }
    }
    FirstHalf(state.z, sm.twiddle, s, [&](int k, ComplexFloat point) {
      const int at = transform * kTransformPitch + s * kPointPitch + k;
      sm.points.re[at] = point.re;
      sm.points.im[at] = point.im;
    });
  });
  block.Phase([&](int t, RowsState& state) {
    if (active(t) && t % kPoints == 0) {
      pass.d_sums[place(t)] = FineSum<gauss7>(sm, t / kPoints, 0);
      pass.d_sums[place(t) + pass.columns] = FineSum<gauss7>(sm, t / kPoints, 1);
    }
    const int at = t / kPoints * kTransformPitch + t % kPoints;
    PB_UNROLL for (int s = 0; s < kPoints; ++s) {
      state.z[s] = {sm.points.re[at + s * kPointPitch], sm.points.im[at + s * kPointPitch]};
    }
  });
  block.Phase([&](int t, RowsState& state) {
    const int at = t / kPoints * kTransformPitch + t % kPoints;
    Dft16(state.z);
    PB_UNROLL for (int k = 0; k < kPoints; ++k) {
      sm.points.re[at + kPoints * k] = state.z[Dft16Place(k)].re;
      sm.points.im[at + kPoints * k] = state.z[Dft16Place(k)].im;
    }
  });
  block.Phase([&](int t, RowsState&) {
    if (!active(t)) return;
    PB_UNROLL for (int m = 0; m < kPoints / 2; ++m) {
      WriteRows(pass, sm.points, t / kPoints, kPoints * m + t % kPoints,
                pass.d_spectra + place(t) * kGpuHalf);
    }
  });
}

/// Loads the tables of a block before its first strip.
template <bool gauss7, typename Block>
PB_DEVICE_CODE void PrepareRows(Block& block, const RowsPass& pass, RowsShared<gauss7>& sm) {
  block.Phase([&](int t, RowsState&) { sm.twiddle[t] = pass.d_twiddle[t]; });
}

/// Computes all transforms of one strip.
template <bool gauss7, typename Block>
PB_DEVICE_CODE void MakeStrip(Block& block, const RowsPass& pass, std::uint32_t item,
                              RowsShared<gauss7>& sm) {
  const StripShape shape = ShapeOfStrip(pass, item);
  block.Phase([&](int t, RowsState&) { TakePixels<gauss7>(t, pass, shape, sm); });
  if constexpr (gauss7) {
    block.Phase([&](int t, RowsState&) { FilterColumns(t, pass, shape, sm); });
  }
  for (int first = 0; first < shape.jobs; first += kPoints) {
    TransformRows<gauss7>(block, pass, shape, first, sm);
  }
}

}  // namespace patchbay::ops::spectral_passes
