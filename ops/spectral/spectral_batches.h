// spectral on a GPU, the host's half: the input of a launch, the tables that its kernels read, and
// its tally as sums. This file needs no GPU. A part of spectral.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "ops/spectral/spectral_frames.h"
#include "ops/spectral/spectral_passes.h"

namespace patchbay::ops {

/// The most that one launch takes. Larger means more memory on the GPU, and fewer rows that are
/// transformed twice because they lie in two batches.
inline constexpr int kBatchRows = 1'280, kBatchColumns = 64;

/// InvalidArgument when `block`, of pixels of `pixel_bytes` bytes, does not hold every pixel that
/// `frames` need, when they are not frames of its image, or `wanted` has another size.
Status CheckSpectralBlock(const plan::SpectralOptions& options, const SpectralPlane& block,
                          int pixel_bytes, const FrameRange& frames,
                          std::span<const std::uint8_t> wanted);

/// `frames` in parts of at most kBatchRows pixel rows and kBatchColumns frames, row by row.
std::vector<FrameRange> SplitFrames(const FrameRange& frames, const plan::SpectralOptions& options);

/// One launch: its frames' pixels, and which of them it makes.
struct SpectralBatch {
  FrameRange frames;
  /// Image pixels to copy: those of the frames and the halo, as far as the image reaches.
  std::int64_t top = 0, left = 0, height = 0, width = 0;
  int rows = 0, columns = 0;          ///< pixel rows and frames side by side of the rows pass
  std::vector<std::uint32_t> wanted;  ///< (row << 16) + column, from the batch's first frame
  std::vector<std::uint32_t> strips;  ///< made by the rows pass; as RowsPass::d_strips
};

/// `part` is of SplitFrames(all); `wanted` is over `all`, empty for every frame.
SpectralBatch MakeBatch(const FrameRange& part, const FrameRange& all,
                        std::span<const std::uint8_t> wanted, const SpectralPlane& plane,
                        const plan::SpectralOptions& options);

/// Constant tables of the kernels.
struct SpectralTables {
  explicit SpectralTables(const plan::SpectralOptions& options);

  spectral_passes::ComplexFloat twiddle[256];
  float window[spectral_passes::kGpuFrame];
  spectral_passes::RingTables rings;
};

/// Where the passes of one batch read and write; on a GPU, its memory.
struct PassMemory {
  const spectral_passes::ComplexFloat* twiddle = nullptr;  ///< SpectralTables' own
  const float* window = nullptr;                           ///< read under a window only
  const spectral_passes::RingTables* rings = nullptr;
  const std::uint32_t* wanted = nullptr;  ///< the batch's lists
  const std::uint32_t* strips = nullptr;
  spectral_passes::ComplexFloat* spectra = nullptr;  ///< rows * columns * 128
  spectral_passes::RowSum* row_sums = nullptr;       ///< rows * columns
  spectral_passes::GpuTally* tally = nullptr;
  std::uint64_t* coefficient_q = nullptr;  ///< nullptr, or 256 * 129
  std::uint64_t* coefficient_qq = nullptr;
};

spectral_passes::RowsPass RowsPassOf(const SpectralBatch& batch,
                                     const plan::SpectralOptions& options,
                                     const spectral_passes::PassPixels& pixels,
                                     const PassMemory& memory);
spectral_passes::ColumnsPass ColumnsPassOf(const SpectralBatch& batch,
                                           const plan::SpectralOptions& options,
                                           const PassMemory& memory);

/// Adds the counts of `frames` frames in `tally` to `sums`; the coefficient arrays are empty or as
/// large as those of `sums`.
void AddTally(const spectral_passes::GpuTally& tally, std::uint64_t frames,
              std::span<const std::uint64_t> coefficient_q,
              std::span<const std::uint64_t> coefficient_qq, SpectralSums& sums);

}  // namespace patchbay::ops
