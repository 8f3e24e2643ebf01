// spectral on a GPU: its two passes, as blocks of 256 threads run them
// (notes/0004-spectral-on-a-gpu.md). The rows pass turns pixels into transformed rows, which frames
// that overlap downwards share; the columns pass transforms their columns and counts. `Block` gives
// Phase(f), which runs f(thread, state) for every thread and ends with all of them having done so,
// and Add(counter, value). Tests run the same code with a Block that is a loop. A part of spectral.
#pragma once

#include "ops/spectral_kernel_math.h"

namespace patchbay::ops::spectral_passes {

inline constexpr int kGpuFrame = 256, kGpuHalf = 128;
inline constexpr int kPassThreads = 256;
inline constexpr int kPassWarps = 8;
/// Points a thread holds, threads that transform together, transforms a block makes at once.
inline constexpr int kPoints = 16;
/// From one group of 16 points in shared memory to the next: no two threads meet in a bank.
inline constexpr int kPointPitch = 17, kTransformPitch = kPoints * kPointPitch;

/// What one block of the rows pass makes at a time: so many rows, of so many frames side by side
/// that their pixels fit kStripWidth.
inline constexpr int kStripRows = 8, kStripPairs = kStripRows / 2;
inline constexpr int kStripWidth = 1152, kMaxStripFrames = 16;
inline constexpr int kPassRadius = 3;  ///< of gauss7
inline constexpr int kStripPitch = 1160;

/// The columns pass: kx 0 to 127 in tiles of 16; kx 128 of 16 frames is one more tile, the last.
inline constexpr int kTiles = 9, kEdgeTile = 8;
inline constexpr int kPassBins = 640, kPassStepsPerBin = 256;
inline constexpr int kPassRingBits = 14;
/// No thread of the columns pass adds up more coefficients of one ring.
inline constexpr int kMaxRingEntries = 96;
/// Filtered values are summed in steps of 2^-12.
inline constexpr int kFilteredSumBits = 12;

/// Of 256 pixels of a row: their sum (in 2^-12 under gauss7), and what was taken off each.
struct RowSum {
  std::int32_t sum;
  std::int32_t offset;
};

/// Where pixels of a block lie: image pixel (top, left) at `d_pixels`.
struct PassPixels {
  const std::uint8_t* d_pixels;
  std::int64_t row_bytes;
  std::int64_t top, left, image_height, image_width;
  int pixel_bytes;  ///< 1, or 3: interleaved RGB
  int component;    ///< of RGB: 0, 1, 2, or -1 for grey
};

struct RowsPass {
  PassPixels pixels;
  std::int64_t first_row, first_column;  ///< of the first frame, image pixels; first_row is even
  int rows;                              ///< even
  int columns, hop, strip_frames;        ///< frames side by side; strip_frames as StripFrames gives
  int gauss7;
  const ComplexFloat* d_twiddle;  ///< exp(-2 pi i s k / 256) at [k][s], both 0 to 15
  const float* d_window;          ///< nullptr: rect
  const std::uint32_t* d_strips;  ///< what to make: strip * groups of frames + group
  ComplexFloat* d_spectra;        ///< [row][frame][kx]; kx 0 holds (row's kx 0, row's kx 128)
  RowSum* d_sums;                 ///< [row][frame]
};

/// Integers that add up to SpectralSums, in halves that do not overflow: value = low + high * 2^32.
struct GpuTally {
  std::uint64_t sum_q, sum_qq_low, sum_qq_high;
  std::uint64_t histogram[kPassBins];
  std::uint64_t ring_low[kGpuHalf + 1], ring_high[kGpuHalf + 1];
};

/// Which coefficients of a tile a thread adds up, and for which ring.
struct RingTables {
  std::uint8_t ring[kTiles][kPassThreads];
  std::uint8_t count[kTiles][kPassThreads];
  std::uint16_t entry[kTiles][kMaxRingEntries][kPassThreads];  ///< ky * 16 + column of the tile
};

struct ColumnsPass {
  const ComplexFloat* d_spectra;
  const RowSum* d_sums;
  int columns, hop;
  const std::uint32_t* d_frames;  ///< (frame row << 16) + frame column
  int frames;
  int sum_bits;  ///< of RowSum::sum: 0 or kFilteredSumBits
  const ComplexFloat* d_twiddle;
  const float* d_window;
  const RingTables* d_rings;
  GpuTally* d_tally;
  std::uint64_t* d_coefficient_q;  ///< nullptr, or [ky][129]
  std::uint64_t* d_coefficient_qq;
};

/// Frames side by side in one strip.
constexpr int StripFrames(int hop) {
  const int most = 1 + (kStripWidth - kGpuFrame) / hop;
  return most < kMaxStripFrames ? most : kMaxStripFrames;
}

struct PointExchange {
  float re[kPoints * kTransformPitch], im[kPoints * kTransformPitch];
};

template <bool gauss7>
struct RowsShared {
  PointExchange points;
  ComplexFloat twiddle[256];
  float window[kGpuFrame];
  std::int32_t sums[kPoints][kPoints][2];
  float filtered[gauss7 ? kStripRows * kStripPitch : 1];
  std::uint8_t grey[(kStripRows + (gauss7 ? 2 * kPassRadius : 0)) * kStripPitch];
};

struct RowsState {
  ComplexFloat z[kPoints];  ///< re of the upper row, im of the lower
};

/// A strip of one group of frames, in the terms of a block.
struct StripShape {
  int first_row;     ///< of the pass
  int first_frame;   ///< of the pass
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

/// The strip's values, with the filter's margin, into shared memory.
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

/// gauss7 down the columns; along the rows when a point is loaded.
PB_DEVICE_CODE void FilterColumns(int t, const RowsPass& pass, const StripShape& shape,
                                  RowsShared<true>& sm) {
  const int width = (shape.frames - 1) * pass.hop + kGpuFrame + 2 * kPassRadius;
  const int left = pass.rows - shape.first_row;
  const int rows = left < kStripRows ? left : kStripRows;
  for (int i = t; i < width; i += kPassThreads) {
    float v[7];
    PB_UNROLL for (int k = 0; k < 6; ++k) v[k] = sm.grey[k * kStripPitch + i];
    for (int row = 0; row < rows; ++row) {
      v[6] = sm.grey[(row + 6) * kStripPitch + i];
      sm.filtered[row * kStripPitch + i] = GaussOf(v[3], v[2] + v[4], v[1] + v[5], v[0] + v[6]);
      PB_UNROLL for (int k = 0; k < 6; ++k) v[k] = v[k + 1];
    }
  }
}

template <bool gauss7>
PB_DEVICE_CODE float PointOf(const RowsShared<gauss7>& sm, int row, int column) {
  if constexpr (gauss7) {
    const float* at = sm.filtered + row * kStripPitch + column;
    return GaussOf(at[3], at[2] + at[4], at[1] + at[5], at[0] + at[6]);
  } else {
    return static_cast<float>(sm.grey[row * kStripPitch + column]);
  }
}

/// In steps of RowSum::sum.
template <bool gauss7>
PB_DEVICE_CODE std::int32_t StepsOfPoint(float value) {
  return static_cast<std::int32_t>(gauss7 ? rintf(value * (1 << kFilteredSumBits)) : value);
}

/// Points 16 m + s of two rows, and their sums.
template <bool gauss7>
PB_DEVICE_CODE void LoadPoints(int s, int transform, int pair, int column, RowsState& state,
                               RowsShared<gauss7>& sm) {
  std::int32_t upper = 0, lower = 0;
  PB_UNROLL for (int m = 0; m < kPoints; ++m) {
    const int at = column + kPoints * m + s;
    state.z[m] = {PointOf<gauss7>(sm, 2 * pair, at), PointOf<gauss7>(sm, 2 * pair + 1, at)};
    upper += StepsOfPoint<gauss7>(state.z[m].re);
    lower += StepsOfPoint<gauss7>(state.z[m].im);
  }
  sm.sums[transform][s][0] = upper;
  sm.sums[transform][s][1] = lower;
}

/// A row's sum, and its mean as a whole number.
template <bool gauss7>
PB_DEVICE_CODE RowSum SumOfRow(const RowsShared<gauss7>& sm, int transform, int row) {
  constexpr int kShift = 8 + (gauss7 ? kFilteredSumBits : 0);
  std::int32_t sum = 0;
  for (int s = 0; s < kPoints; ++s) sum += sm.sums[transform][s][row];
  return {sum, (sum + (1 << (kShift - 1))) >> kShift};
}

/// The first half of a transform of 256 points: what thread s makes of points 16 m + s goes to the
/// exchange at `at` + k.
template <typename Exchange>
PB_DEVICE_CODE void FirstHalf(ComplexFloat (&z)[kPoints], const ComplexFloat* twiddle, int s,
                              const Exchange& put) {
  Dft16(z);
  PB_UNROLL for (int k = 0; k < kPoints; ++k) {
    const ComplexFloat& point = z[Dft16Place(k)];
    put(k, k == 0 ? point : Turned(point, twiddle[k * kPoints + s]));
  }
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
  block.Phase([&](int t, RowsState& state) {
    if (!active(t)) return;
    LoadPoints<gauss7>(t % kPoints, t / kPoints, pair_of(t), frame_of(t) * pass.hop, state, sm);
  });
  block.Phase([&](int t, RowsState& state) {
    if (!active(t)) return;
    const int s = t % kPoints, transform = t / kPoints;
    const RowSum upper = SumOfRow<gauss7>(sm, transform, 0);
    const RowSum lower = SumOfRow<gauss7>(sm, transform, 1);
    if (s == 0) {
      pass.d_sums[place(t)] = upper;
      pass.d_sums[place(t) + pass.columns] = lower;
    }
    PB_UNROLL for (int m = 0; m < kPoints; ++m) {
      state.z[m].re -= static_cast<float>(upper.offset);
      state.z[m].im -= static_cast<float>(lower.offset);
      if (pass.d_window != nullptr) {
        const float w = sm.window[kPoints * m + s];
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

/// What a block needs before its first strip.
template <bool gauss7, typename Block>
PB_DEVICE_CODE void PrepareRows(Block& block, const RowsPass& pass, RowsShared<gauss7>& sm) {
  block.Phase([&](int t, RowsState&) {
    sm.twiddle[t] = pass.d_twiddle[t];
    if (pass.d_window != nullptr) sm.window[t] = pass.d_window[t];
  });
}

/// Every transform of one strip.
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

struct ColumnsShared {
  /// [s][k][column of the tile]; then the powers, [ky][column], over `re`.
  PointExchange points;
  std::uint32_t histogram[kPassWarps][kPassBins];
  ComplexFloat twiddle[256];
  float window[kGpuFrame];
  std::int64_t part[kGpuFrame];  ///< of the frame's sum, and offsets of its rows
  std::int32_t offset[kGpuFrame];
  std::uint64_t total_q[kPassThreads], total_qq[kPassThreads];
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

/// What the row's offset is above the frame's mean, rounded once.
PB_DEVICE_CODE float AboveMean(const ColumnsPass& pass, const ColumnsShared& sm, std::int64_t sum,
                               int row) {
  const std::int64_t one = std::int64_t{1} << (16 + pass.sum_bits);
  return static_cast<float>(static_cast<double>(sm.offset[row] * one - sum) *
                            (1.0 / static_cast<double>(one)));
}

/// What thread (c, s) does with its column: points 16 m + s of a frame's transformed rows.
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
    block.Add(&sm.histogram[t / 32][q / kPassStepsPerBin], once ? 1u : 2u);
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

/// One tile of one frame; of the edge tile, 16 frames.
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

/// A block's counters into the tally.
template <bool coefficients, typename Block>
PB_DEVICE_CODE void FlushColumns(Block& block, const ColumnsPass& pass, int tile,
                                 ColumnsShared& sm) {
  using State = ColumnsState<coefficients>;
  const auto once = [&](int t) { return tile == kEdgeTile || (tile == 0 && t % kPoints == 0); };
  block.Phase([&](int t, State& state) {
    sm.total_q[t] = state.q * (once(t) ? 1 : 2);
    sm.total_qq[t] = state.qq * (once(t) ? 1 : 2);
    const int ring = pass.d_rings->ring[tile][t];
    if (pass.d_rings->count[tile][t] != 0) {
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
  });
  block.Phase([&](int t, State&) {
    for (int bin = t; bin < kPassBins; bin += kPassThreads) {
      std::uint64_t count = 0;
      for (int warp = 0; warp < kPassWarps; ++warp) count += sm.histogram[warp][bin];
      if (count != 0) block.Add(&pass.d_tally->histogram[bin], count);
    }
    if (t % kPoints != 0) return;
    for (int i = 1; i < kPoints; ++i) {
      sm.total_q[t] += sm.total_q[t + i];
      sm.total_qq[t] += sm.total_qq[t + i];
    }
  });
  block.Phase([&](int t, State&) {
    if (t != 0) return;
    for (int i = kPoints; i < kPassThreads; i += kPoints) {
      sm.total_q[0] += sm.total_q[i];
      sm.total_qq[0] += sm.total_qq[i];
    }
    block.Add(&pass.d_tally->sum_q, sm.total_q[0]);
    block.Add(&pass.d_tally->sum_qq_low, sm.total_qq[0] & 0xFFFFFFFFu);
    block.Add(&pass.d_tally->sum_qq_high, sm.total_qq[0] >> 32);
  });
}

/// Items `first`, `first` + `step`, ... of one tile: frames, or groups of 16 for the edge tile.
template <bool coefficients, typename Block>
PB_DEVICE_CODE void CountColumns(Block& block, const ColumnsPass& pass, int tile, int first,
                                 int step, ColumnsShared& sm) {
  block.Phase([&](int t, ColumnsState<coefficients>&) {
    sm.twiddle[t] = pass.d_twiddle[t];
    if (pass.d_window != nullptr) sm.window[t] = pass.d_window[t];
    for (int warp = 0; warp < kPassWarps; ++warp) {
      for (int bin = t; bin < kPassBins; bin += kPassThreads) sm.histogram[warp][bin] = 0;
    }
  });
  const int items = tile == kEdgeTile ? (pass.frames + kPoints - 1) / kPoints : pass.frames;
  for (int item = first; item < items; item += step) {
    CountTile<coefficients>(block, pass, tile, item, sm);
  }
  FlushColumns<coefficients>(block, pass, tile, sm);
}

}  // namespace patchbay::ops::spectral_passes
