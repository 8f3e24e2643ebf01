// Where the frames of an image lie, and how its work is cut into tasks and pieces: pure arithmetic.
#pragma once

#include <cstdint>
#include <vector>

#include "ops/spectral/spectral_frames.h"
#include "runtime/core/box.h"
#include "runtime/model/ops/spectral_options.h"
#include "runtime/model/results/spectra_document.h"
#include "workers/sources/image_source.h"

namespace patchbay::workers {

/// How much of an image is read, measured and leased at a time. Does not affect the results. The
/// defaults are for a CPU core.
struct SpectraPace {
  /// Least rows of a band of tiles. Larger means larger reads and more memory.
  std::int64_t band_rows = 256;
  /// Pixels of a unit, small enough that decoded pixels stay in the caches until their frames are
  /// measured.
  std::int64_t unit_pixels = std::int64_t{1} << 19;
  /// Values transformed in about a second, decoding included, at the usual strip; a larger strip
  /// asks for longer tasks.
  std::int64_t values_of_a_second = std::int64_t{8'192} * 256 * 256;
};

/// Frames of a whole level, counted from its top left.
struct SpectraGrid {
  std::int64_t height = 0, width = 0;              ///< pixels
  std::int64_t chunk_height = 0, chunk_width = 0;  ///< native tile, at most the image
  std::int64_t rows = 0, columns = 0;              ///< frames; 0 when smaller than a frame
  plan::SpectralOptions options;
  SpectraPace pace;

  std::int64_t Frames() const { return rows * columns; }
  ops::FrameRange All() const { return {0, rows, 0, columns}; }
};
SpectraGrid GridOf(const LevelLayout& level, const plan::SpectralOptions& options,
                   const SpectraPace& pace = {});

results::SpectraRemainder RemainderOf(const SpectraGrid& grid);

/// The strips of an image: all frames once, panel by panel, each from the top. A strip is about a
/// second of work and at least eight times `strip` rows of pixels, unless that would be minutes or
/// leave fewer than four. The last two may be cut finer and finer (kFine): no worker waits long for
/// the end of the job, at the price of five rows of tiles that are decoded twice.
enum class StripTail : std::uint8_t { kEven, kFine };
std::vector<ops::FrameRange> CutStrips(const SpectraGrid& grid, std::int64_t strip,
                                       StripTail tail = StripTail::kEven);

/// Every pixel that frames depend on.
Box PixelsOf(const SpectraGrid& grid, const ops::FrameRange& frames);
/// The frames that depend on a pixel of `box`.
ops::FrameRange FramesTouching(const SpectraGrid& grid, const Box& box);
/// The frames all of whose pixels lie above row `bottom` and left of column `right`: ends of ranges
/// from 0.
std::int64_t RowsAbove(const SpectraGrid& grid, std::int64_t bottom);
std::int64_t ColumnsBefore(const SpectraGrid& grid, std::int64_t right);

/// Bands of whole tile rows, each cut into blocks of whole tiles, that cover PixelsOf(frames): band
/// by band, each from the left. Tiles are cut by the image's border only, so that each is decoded
/// whole and once.
std::vector<Box> CutUnits(const SpectraGrid& grid, const ops::FrameRange& frames);
/// The tiles within a unit, row-major.
std::vector<Box> TilesOf(const SpectraGrid& grid, const Box& unit);

ops::FrameRange Intersect(const ops::FrameRange& a, const ops::FrameRange& b);
std::int64_t FramesIn(const ops::FrameRange& frames);
/// Raw bytes of 8-bit pixels that are this strip's share of the image: they add up to all that
/// frames cover.
std::uint64_t RawBytesOf(const SpectraGrid& grid, const ops::FrameRange& frames, int channels);

}  // namespace patchbay::workers
