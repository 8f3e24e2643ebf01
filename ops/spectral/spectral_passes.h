// spectral on a GPU: its two passes, as blocks of 256 threads run them
// (notes/0004-spectral-on-a-gpu.md). The rows pass turns pixels into transformed rows, which frames
// that overlap downwards share; the columns pass transforms their columns and counts. `Block` has
// Phase(f), which runs f(thread, state) for every thread and returns after all of them, and
// Add(counter, value). Tests run the same code with a Block that is a loop. A part of spectral.
#pragma once

#include "ops/spectral/spectral_kernel_math.h"

namespace patchbay::ops::spectral_passes {

inline constexpr int kGpuFrame = 256, kGpuHalf = 128;
inline constexpr int kPassThreads = 256;
inline constexpr int kPassWarps = 8;
/// Points a thread holds, threads that transform together, transforms a block makes at once.
inline constexpr int kPoints = 16;
/// From one group of 16 points in shared memory to the next: no two threads meet in a bank.
inline constexpr int kPointPitch = 17, kTransformPitch = kPoints * kPointPitch;

/// A strip, which one block of the rows pass makes at a time: kStripRows rows of at most
/// kMaxStripFrames frames side by side, kStripWidth pixels wide at most.
inline constexpr int kStripRows = 8, kStripPairs = kStripRows / 2;
inline constexpr int kStripWidth = 1152, kMaxStripFrames = 16;
inline constexpr int kPassRadius = 3;  ///< radius of gauss7
inline constexpr int kStripPitch = 1160;

/// The columns pass: kx 0 to 127 in tiles of 16; kx 128 of 16 frames is one more tile, the last.
inline constexpr int kTiles = 9, kEdgeTile = 8;
inline constexpr int kPassBins = 640, kPassStepsPerBin = 256;
/// Neighbouring threads count in different histograms: fewer of a warp meet at one counter.
inline constexpr int kHistogramsOfBlock = 2;
inline constexpr int kPassRingBits = 14;
/// No thread of the columns pass adds up more coefficients of one ring.
inline constexpr int kMaxRingEntries = 72;
/// Filtered values are summed in steps of 2^-12.
inline constexpr int kFilteredSumBits = 12;
/// gauss7 down the columns in whole numbers: weights in 2^-22 that sum to 1, of values less 128, so
/// that twice the sum of two fits 32 bits.
inline constexpr int kWholeBits = 22, kFilterCentre = 128;
inline constexpr std::int32_t kWholeOne = 909'096, kWholeTwo = 466'745, kWholeThree = 153'649;
inline constexpr std::int32_t kWholeCentre =
    (1 << kWholeBits) - 2 * (kWholeOne + kWholeTwo + kWholeThree);

/// The sum of 256 pixels of a row (in 2^-12 under gauss7), and the offset subtracted from each.
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
  int component;    ///< channel of RGB: 0, 1, 2, or -1 for grey
};

struct RowsPass {
  PassPixels pixels;
  std::int64_t first_row, first_column;  ///< the first frame in image pixels; first_row is even
  int rows;                              ///< even
  int columns, hop, strip_frames;        ///< frames side by side; strip_frames from StripFrames
  int gauss7;
  const ComplexFloat* d_twiddle;  ///< exp(-2 pi i s k / 256) at [k][s], both 0 to 15
  const float* d_window;          ///< nullptr: rect
  const std::uint32_t* d_strips;  ///< the strips to make: strip * groups of frames + group
  ComplexFloat* d_spectra;        ///< [row][frame][kx]; kx 0 holds (row's kx 0, row's kx 128)
  RowSum* d_sums;                 ///< [row][frame]
};

/// Integers that add up to SpectralSums, in halves that do not overflow: value = low + high * 2^32.
struct GpuTally {
  std::uint64_t sum_q, sum_qq_low, sum_qq_high;
  std::uint64_t histogram[kPassBins];
  std::uint64_t ring_low[kGpuHalf + 1], ring_high[kGpuHalf + 1];
};

/// The coefficients of a tile that each thread adds up, and their ring.
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
  int sum_bits;  ///< fraction bits of RowSum::sum: 0 or kFilteredSumBits
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

/// Transforms of one block between their halves.
struct PointExchange {
  float re[kPoints * kTransformPitch], im[kPoints * kTransformPitch];
};

/// The first half of a transform of 256 points: thread s transforms points 16 m + s and stores the
/// results in the exchange at `at` + k.
template <typename Exchange>
PB_DEVICE_CODE void FirstHalf(ComplexFloat (&z)[kPoints], const ComplexFloat* twiddle, int s,
                              const Exchange& put) {
  Dft16(z);
  PB_UNROLL for (int k = 0; k < kPoints; ++k) {
    const ComplexFloat& point = z[Dft16Place(k)];
    put(k, k == 0 ? point : Turned(point, twiddle[k * kPoints + s]));
  }
}

}  // namespace patchbay::ops::spectral_passes
