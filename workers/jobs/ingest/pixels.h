// Where the pixels of an ingest's zarr shards come from: the source, finer levels in the staging
// folder, or averaging on the way.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "ops/stain_normalize/stain_histogram.h"
#include "workers/jobs/ingest/slide.h"
#include "workers/jobs/task/progress.h"

namespace patchbay::workers {

/// Memory for pixels that grows as needed. Not initialised: whoever sizes it fills it.
class PixelBuffer {
 public:
  /// Interleaved pixels (depth, height, width, channels) of the store's kind; what was in the
  /// buffer stays when it need not grow.
  TensorView View(const Extent& size, const zarr::ImageStoreSettings& store);

 private:
  std::unique_ptr<std::byte[]> bytes_;
  std::size_t capacity_ = 0;
};

/// Reads boxes of output levels. Not thread-safe.
class LevelReader {
 public:
  /// All of it outlives the reader.
  LevelReader(TaskContext& context, const IngestSlide& slide)
      : context_(context), slide_(slide), store_path_(slide.Store()) {
    encoded_.after_piece = ProgressOf(context);
  }

  /// `box` lies inside the level; `out` has its shape. Absent source tiles are the store's fill
  /// value. A level made together with finer ones is averaged from the finest of them, which is
  /// stored; the others may not be there yet.
  Status Read(int level, const Box& box, const TensorView& out);

  /// Pieces of the source that are absent in what was read so far, counted in each read.
  std::uint64_t absent_pieces() const { return absent_pieces_; }
  /// Counts again the absent pieces of the last read that reach to level row `y` or beyond, as if
  /// the rows from `y` on had been read separately.
  void CountAbsentAgain(std::int64_t y);

 private:
  Status ReadHalved(int level, const Box& box, const TensorView& out);
  Status ReadSource(int source_level, const Box& box, const TensorView& out);
  Status ReadStored(int stored, const Box& box, const TensorView& out);

  TaskContext& context_;
  const IngestSlide& slide_;
  std::string store_path_;
  std::unique_ptr<DecodeScratch> scratch_;
  EncodedPatch encoded_;
  std::uint64_t absent_pieces_ = 0;
};

/// The rows of one zarr shard, from top to bottom, for zarr::ShardEncoder. Reads whole rows of the
/// source's tiles and keeps what reaches into the next chunk row, so that no tile row is decoded
/// twice. Not thread-safe.
class ShardPixels {
 public:
  /// All of it outlives this.
  ShardPixels(TaskContext& context, const IngestSlide& slide, LevelReader& reader,
              const zarr::ShardPlace& place);

  /// See zarr::ShardRows; `row` counts the level's chunk rows.
  StatusOr<ConstTensorView> Rows(std::int64_t row);
  /// The colours of what Rows gave, each row once. Empty unless it is RGB of the finest level.
  ops::StainHistogram TakeColours() { return colours_.Take(); }
  std::int64_t pixels() const { return shard_.Pixels(); }

 private:
  std::int64_t EndOfTiles(std::int64_t y) const;
  Status CountColours(const ConstTensorView& rows, std::int64_t begin);

  TaskContext& context_;
  const IngestSlide& slide_;
  LevelReader& reader_;
  const int level_;
  const bool counts_colours_;
  ops::StainCounter colours_;
  std::int64_t counted_end_ = 0;  ///< level rows before it are counted
  Box shard_;
  std::int64_t band_rows_ = 0, tile_rows_ = 1;
  std::int64_t held_begin_ = 0, held_end_ = 0;  ///< level rows that are in `held_`, from its top
  PixelBuffer held_;
};

}  // namespace patchbay::workers
