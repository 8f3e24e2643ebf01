// The inner loops of spectral on the CPU: their working memory, and the variants for instruction
// sets. Every variant is compiled from the templates of spectral_fft.h and spectral_count.h and
// gives the same bits. A part of spectral.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "ops/spectral/spectral_sums.h"
#include "runtime/model/ops/spectral_options.h"

namespace patchbay::ops {

/// Memory is laid out in blocks of this many neighbours, independently of the machine's vectors.
inline constexpr int kSpectralLanes = 16;
/// Columns that are transformed together: two real columns, 16 apart, as one complex one.
inline constexpr int kSpectralColumns = 2 * kSpectralLanes;
/// Consecutive coefficients count in different histograms: an increment need not wait for the last.
inline constexpr int kHistogramCopies = 8;
/// A bin is that many steps of q wide.
inline constexpr int kBinShift = 8, kBinSteps = 1 << kBinShift;
static_assert(kBinSteps == kSpectralBinDb * kSpectralSteps);
/// Rows 0 and frame / 2 have kx 0 to frame / 2 only, in whole blocks.
constexpr int EdgeRow(int frame) { return frame / 2 + kSpectralLanes; }
/// One coefficient of them may have all power of a frame of 512: its counter has a bit less.
inline constexpr int kEdgeFractionBits = kRingFractionBits - 1;
/// Ring counters (scaled) and 32-bit counters (frames) never pass these before a Flush. A frame
/// adds less than 2^63 to a ring counter, and at most 2^17 to one of 32 bits.
inline constexpr double kMaxRingTally = 0x1p62;
inline constexpr std::uint64_t kMaxTallyFrames = 1 << 14;

struct alignas(64) FloatBlock {
  float lane[kSpectralLanes];
};
struct alignas(64) IntegerBlock {
  std::uint32_t lane[kSpectralLanes];
};
struct alignas(128) WideBlock {
  std::uint64_t lane[kSpectralLanes];
};

/// Counts that are later added to SpectralSums. Coefficients of rows 0 < ky < frame / 2 stand for
/// two of the full plane, and so do the inner ones of rows 0 and frame / 2: they are counted once
/// here, in `twice`. Lane 0 of group 0 holds those two rows and is not counted there.
struct SpectralTally {
  explicit SpectralTally(const plan::SpectralOptions& options);

  std::uint64_t frames = 0;
  std::uint64_t twice_q = 0, once_q = 0;
  absl::uint128 twice_qq = 0, once_qq = 0;
  std::vector<std::uint32_t> twice;  ///< kHistogramCopies x kSpectralBins
  std::vector<std::uint32_t> once;   ///< kSpectralBins
  /// Scaled power at (ky, kx) plus that at (ky, -kx): [group][kx 0..frame/2] of 16 ky.
  std::vector<WideBlock> rings;
  std::vector<std::uint64_t> edge_rings;  ///< rows 0 and frame / 2: [2][EdgeRow]
  double ring_bound = 0;                  ///< no counter of either is larger
  /// Sums of each coefficient's level q and of q^2: [group][kx 0..frame-1] of 16 ky, and
  /// [2][EdgeRow] at the edges.
  std::vector<IntegerBlock> coefficient_q;
  std::vector<WideBlock> coefficient_qq;
  std::vector<std::uint64_t> edge_q, edge_qq;
};

/// Tables and scratch of one thread. Column n of a frame lies in slot (start + n) % frame.
struct SpectralWork {
  explicit SpectralWork(const plan::SpectralOptions& options);

  int frame;
  std::vector<float> twiddle;        ///< factors of a transform's two steps: pairs (cos, sin)
  std::vector<float> window;         ///< 1 or Hann
  std::vector<float> column_weight;  ///< half of it: columns are transformed in pairs
  std::vector<int> ring_limit;       ///< last kx of each group that has a ring there

  std::vector<FloatBlock> rows;     ///< kSpectralColumns columns, filtered along the rows
  std::vector<FloatBlock> columns;  ///< pixels, then transform of kSpectralColumns columns
  std::vector<FloatBlock> plane;    ///< transformed columns: [group][slot][re, im] of 16 ky
  std::vector<double> column_sum;   ///< sum of the pixels of the column in a slot
  std::vector<double> column_mean;  ///< subtracted from its pixels
  std::vector<FloatBlock> scratch, power, edge_power;
  SpectralTally tally;
};

/// kSpectralColumns columns of one frame row, from its first row on. Under gauss7, `pixels` is
/// plan::kGauss7Radius rows and columns above and left of that, and has as many below and right.
struct ColumnBlock {
  const std::uint8_t* pixels = nullptr;
  std::int64_t row_bytes = 0;
  int slot = 0;  ///< slot of the first column
  bool gauss7 = false;
};

/// One instruction set's loops for one frame size and window.
struct SpectralKernel {
  void (*transform_columns)(SpectralWork& work, const ColumnBlock& block);
  /// Counts the frame whose first column is in slot `start`.
  void (*count_frame)(SpectralWork& work, int start);
};

/// The variant's loops, for valid options.
SpectralKernel PlainSpectralKernel(int frame, bool hann);
SpectralKernel Avx2SpectralKernel(int frame, bool hann);
/// Only where HasAvx512.
SpectralKernel Avx512SpectralKernel(int frame, bool hann);

/// Adds the tally to `sums`, and empties it.
void Flush(SpectralTally& tally, SpectralSums& sums);

/// The ring of ky^2 + kx^2.
int RingOf(std::int64_t square);

/// The first factor of frame = A * B: a transform is A-point ones, twiddles, B-point ones.
constexpr int FirstFactor(int frame) { return frame == 32 ? 4 : frame <= 128 ? 8 : 16; }

}  // namespace patchbay::ops
