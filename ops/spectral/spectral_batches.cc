#include "ops/spectral/spectral_batches.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <tuple>
#include <utility>

#include "runtime/core/strings.h"

namespace patchbay::ops {
namespace {

using namespace spectral_passes;  // NOLINT: this file is their other half

static_assert(kPassBins == kSpectralBins);
static_assert(kPassStepsPerBin == kSpectralBinDb * kSpectralSteps);
static_assert(kPassRingBits == kRingFractionBits);
static_assert(kPassRadius == plan::kGauss7Radius);
static_assert(kStripWidth + 2 * kPassRadius <= kStripPitch);
static_assert(kBatchRows >= kGpuFrame);

Status RefusedBlock(const std::string& cause) {
  return InvalidArgument("count spectral frames: ", cause);
}

/// Along one side: frames [begin, end), and the pixels [first, first + held) that the block has.
struct Side {
  std::string_view name;
  std::int64_t begin, end, first, held, image;
};

/// The pixels frames [begin, end) need.
std::pair<std::int64_t, std::int64_t> Needed(std::int64_t begin, std::int64_t end,
                                             std::int64_t image,
                                             const plan::SpectralOptions& options) {
  const std::int64_t halo = plan::SpectralHalo(options);
  return {std::max<std::int64_t>(begin * options.hop - halo, 0),
          std::min((end - 1) * options.hop + options.frame + halo, image)};
}

Status CheckBlockSide(const Side& side, const plan::SpectralOptions& options) {
  if (side.first < 0 || side.held < 0 || side.first > side.image ||
      side.held > side.image - side.first) {
    return RefusedBlock(StrCat(side.name, ": the block reaches beyond the image"));
  }
  const std::int64_t all = plan::FramesAlong(side.image, options);
  if (side.begin < 0 || side.begin > side.end || side.end > all) {
    return RefusedBlock(StrCat(side.name, ": frames ", side.begin, " to ", side.end, " of ", all));
  }
  if (side.begin == side.end) return absl::OkStatus();
  const auto [first, end] = Needed(side.begin, side.end, side.image, options);
  if (side.first > first || side.first + side.held < end) {
    return RefusedBlock(StrCat(side.name, ": the block holds pixels ", side.first, " to ",
                               side.first + side.held, ", the frames need ", first, " to ", end));
  }
  return absl::OkStatus();
}

/// ky as a signed frequency.
int Signed(int ky) { return ky <= kGpuHalf ? ky : ky - kGpuFrame; }

int RingAt(int ky, int kx) {
  return static_cast<int>(std::lrint(std::sqrt(Signed(ky) * Signed(ky) + kx * kx)));
}

void AddEntry(RingTables& rings, int tile, int thread, int entry) {
  std::uint8_t& count = rings.count[tile][thread];
  PB_CHECK(count < kMaxRingEntries);
  rings.entry[tile][count++][thread] = static_cast<std::uint16_t>(entry);
}

/// Ring r of a tile is added up by two threads: r - 1 takes ky 0 to 128, r + 127 the rest. The edge
/// tile's thread c adds up frame c.
void FillRings(RingTables& rings) {
  rings = {};
  for (int tile = 0; tile < kEdgeTile; ++tile) {
    for (int t = 0; t < kPassThreads; ++t) {
      rings.ring[tile][t] = static_cast<std::uint8_t>(t % kGpuHalf + 1);
    }
    for (int c = 0; c < kPoints; ++c) {
      for (int ky = 0; ky < kGpuFrame; ++ky) {
        const int ring = RingAt(ky, tile * kPoints + c);
        if (ring == 0 || ring > kGpuHalf) continue;
        AddEntry(rings, tile, ring - 1 + (ky > kGpuHalf ? kGpuHalf : 0), ky * kPoints + c);
      }
    }
  }
  for (int t = 0; t < kPassThreads; ++t) rings.ring[kEdgeTile][t] = kGpuHalf;
  for (int c = 0; c < kPoints; ++c) {
    for (int ky = 0; ky < kGpuFrame; ++ky) {
      if (RingAt(ky, kGpuHalf) == kGpuHalf) AddEntry(rings, kEdgeTile, c, ky * kPoints + c);
    }
  }
}

/// The strips that the wanted frames lie in.
std::vector<std::uint32_t> StripsOf(const SpectralBatch& batch, int hop) {
  const int per_group = StripFrames(hop);
  const auto groups = static_cast<std::uint32_t>((batch.columns + per_group - 1) / per_group);
  const auto strips = static_cast<std::uint32_t>((batch.rows + kStripRows - 1) / kStripRows);
  std::vector<bool> needed(strips * groups);
  for (const std::uint32_t frame : batch.wanted) {
    const std::uint32_t first = (frame >> 16) * static_cast<std::uint32_t>(hop);
    const std::uint32_t group = (frame & 0xFFFF) / static_cast<std::uint32_t>(per_group);
    for (std::uint32_t strip = first / kStripRows; strip <= (first + kGpuFrame - 1) / kStripRows;
         ++strip) {
      needed[strip * groups + group] = true;
    }
  }
  std::vector<std::uint32_t> made;
  for (std::uint32_t i = 0; i < needed.size(); ++i) {
    if (needed[i]) made.push_back(i);
  }
  return made;
}

}  // namespace

Status CheckSpectralBlock(const plan::SpectralOptions& options, const SpectralPlane& block,
                          int pixel_bytes, const FrameRange& frames,
                          std::span<const std::uint8_t> wanted) {
  PB_RETURN_IF_ERROR(CheckBlockSide(
      {"rows", frames.row_begin, frames.row_end, block.top, block.height, block.image_height},
      options));
  PB_RETURN_IF_ERROR(CheckBlockSide({"columns", frames.column_begin, frames.column_end, block.left,
                                     block.width, block.image_width},
                                    options));
  const std::int64_t rows = frames.row_end - frames.row_begin;
  const std::int64_t columns = frames.column_end - frames.column_begin;
  if (rows > 0 && columns > 0 &&
      (block.pixels == nullptr || block.row_bytes / pixel_bytes < block.width)) {
    return RefusedBlock("the block has no pixels, or rows longer than their distance");
  }
  if (columns > 0 &&
      static_cast<std::uint64_t>(rows) > kMaxSpectralFrames / static_cast<std::uint64_t>(columns)) {
    return RefusedBlock("too many frames at once");
  }
  if (!wanted.empty() && wanted.size() != static_cast<std::size_t>(rows * columns)) {
    return RefusedBlock(StrCat("wanted: ", wanted.size(), " of ", rows * columns, " frames"));
  }
  return absl::OkStatus();
}

std::vector<FrameRange> SplitFrames(const FrameRange& frames,
                                    const plan::SpectralOptions& options) {
  const std::int64_t rows = 1 + (kBatchRows - options.frame) / options.hop;
  std::vector<FrameRange> parts;
  for (std::int64_t i = frames.row_begin; i < frames.row_end; i += rows) {
    for (std::int64_t j = frames.column_begin; j < frames.column_end; j += kBatchColumns) {
      parts.push_back({i, std::min(i + rows, frames.row_end), j,
                       std::min<std::int64_t>(j + kBatchColumns, frames.column_end)});
    }
  }
  return parts;
}

SpectralBatch MakeBatch(const FrameRange& part, const FrameRange& all,
                        std::span<const std::uint8_t> wanted, const SpectralPlane& plane,
                        const plan::SpectralOptions& options) {
  SpectralBatch batch;
  batch.frames = part;
  std::int64_t end = 0;
  std::tie(batch.top, end) = Needed(part.row_begin, part.row_end, plane.image_height, options);
  batch.height = end - batch.top;
  std::tie(batch.left, end) =
      Needed(part.column_begin, part.column_end, plane.image_width, options);
  batch.width = end - batch.left;
  const auto along = [](std::int64_t begin, std::int64_t stop) {
    return static_cast<int>(stop - begin);
  };
  batch.columns = along(part.column_begin, part.column_end);
  batch.rows = (along(part.row_begin, part.row_end) - 1) * options.hop + options.frame;
  for (std::int64_t i = part.row_begin; i < part.row_end; ++i) {
    for (std::int64_t j = part.column_begin; j < part.column_end; ++j) {
      const std::int64_t at =
          (i - all.row_begin) * (all.column_end - all.column_begin) + j - all.column_begin;
      if (!wanted.empty() && wanted[static_cast<std::size_t>(at)] == 0) continue;
      batch.wanted.push_back(
          static_cast<std::uint32_t>(((i - part.row_begin) << 16) | (j - part.column_begin)));
    }
  }
  batch.strips = StripsOf(batch, options.hop);
  return batch;
}

SpectralTables::SpectralTables(const plan::SpectralOptions& options) {
  for (int k = 0; k < kPoints; ++k) {
    for (int s = 0; s < kPoints; ++s) {
      const double angle = -2 * std::numbers::pi * s * k / kGpuFrame;
      twiddle[k * kPoints + s] = {static_cast<float>(std::cos(angle)),
                                  static_cast<float>(std::sin(angle))};
    }
  }
  const bool hann = options.window == plan::SpectralWindow::kHann;
  for (int n = 0; n < kGpuFrame; ++n) {
    const double angle = 2 * std::numbers::pi * n / kGpuFrame;
    window[n] = hann ? static_cast<float>(0.5 - 0.5 * std::cos(angle)) : 1.0F;
  }
  FillRings(rings);
}

RowsPass RowsPassOf(const SpectralBatch& batch, const plan::SpectralOptions& options,
                    const PassPixels& pixels, const PassMemory& memory) {
  RowsPass pass{};
  pass.pixels = pixels;
  pass.first_row = batch.frames.row_begin * options.hop;
  pass.first_column = batch.frames.column_begin * options.hop;
  pass.rows = batch.rows;
  pass.columns = batch.columns;
  pass.hop = options.hop;
  pass.strip_frames = StripFrames(options.hop);
  pass.gauss7 = options.prefilter == plan::SpectralPrefilter::kGauss7 ? 1 : 0;
  pass.d_twiddle = memory.twiddle;
  pass.d_window = options.window == plan::SpectralWindow::kHann ? memory.window : nullptr;
  pass.d_strips = memory.strips;
  pass.d_spectra = memory.spectra;
  pass.d_sums = memory.row_sums;
  return pass;
}

ColumnsPass ColumnsPassOf(const SpectralBatch& batch, const plan::SpectralOptions& options,
                          const PassMemory& memory) {
  ColumnsPass pass{};
  pass.d_spectra = memory.spectra;
  pass.d_sums = memory.row_sums;
  pass.columns = batch.columns;
  pass.hop = options.hop;
  pass.d_frames = memory.wanted;
  pass.frames = static_cast<int>(batch.wanted.size());
  pass.sum_bits = options.prefilter == plan::SpectralPrefilter::kGauss7 ? kFilteredSumBits : 0;
  pass.d_twiddle = memory.twiddle;
  pass.d_window = options.window == plan::SpectralWindow::kHann ? memory.window : nullptr;
  pass.d_rings = memory.rings;
  pass.d_tally = memory.tally;
  pass.d_coefficient_q = options.coefficients ? memory.coefficient_q : nullptr;
  pass.d_coefficient_qq = options.coefficients ? memory.coefficient_qq : nullptr;
  return pass;
}

void AddTally(const GpuTally& tally, std::uint64_t frames,
              std::span<const std::uint64_t> coefficient_q,
              std::span<const std::uint64_t> coefficient_qq, SpectralSums& sums) {
  const auto whole = [](std::uint64_t low, std::uint64_t high) {
    return (absl::uint128(high) << 32) + low;
  };
  sums.frames += frames;
  sums.sum_q += tally.sum_q;
  sums.sum_qq += whole(tally.sum_qq_low, tally.sum_qq_high);
  for (std::size_t i = 0; i < sums.histogram.size(); ++i) sums.histogram[i] += tally.histogram[i];
  for (std::size_t k = 1; k <= kGpuHalf; ++k) {
    sums.ring_power[k] += whole(tally.ring_low[k], tally.ring_high[k]);
  }
  for (std::size_t i = 0; i < coefficient_q.size(); ++i) {
    sums.coefficient_q[i] += coefficient_q[i];
    sums.coefficient_qq[i] += coefficient_qq[i];
  }
}

}  // namespace patchbay::ops
