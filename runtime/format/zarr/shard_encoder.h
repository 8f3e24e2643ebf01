// Encodes zarr shards, and makes the coarser levels of a pyramid while the pixels are in memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "runtime/core/hash.h"
#include "runtime/core/status.h"
#include "runtime/core/tensor_view.h"
#include "runtime/format/zarr/codec/chunk_encoder.h"
#include "runtime/format/zarr/image_store.h"

namespace patchbay::zarr {

/// An inner chunk among the bytes it was encoded into.
struct EncodedChunk {
  std::uint64_t offset = 0, size_bytes = 0;  ///< size 0: background, not stored
  Digest pixels;
};

/// A block of inner chunks of one level, without the zarr shard around it. A shard of a finer level
/// makes it for AssembleShard.
struct ShardPiece {
  int level = 0;
  Point first;                       ///< chunk, in the level's chunk grid
  Extent grid;                       ///< chunks along each axis
  std::vector<EncodedChunk> chunks;  ///< row-major
  std::vector<std::byte> bytes;
};

/// The part of a level's chunk grid that a shard covers, without its chunks.
ShardPiece ChunksOf(const ImageStoreSettings& settings, const Extent& level,
                    const ShardPlace& place);
/// Appends a chunk that is encoded already, or an absent one without bytes.
void AppendEncoded(std::span<const std::byte> encoded, const Digest& pixels, ShardPiece& piece);

/// The piece as a file, with a checksum over all of it.
std::vector<std::byte> SerialisePiece(const ShardPiece& piece);
/// DataLoss unless `bytes` are the output of SerialisePiece.
StatusOr<ShardPiece> ParsePiece(std::span<const std::byte> bytes);

/// Levels above a shard's own whose chunks lie whole within one shard: 3 for shards of 8 x 8 (x 8)
/// chunks, never more; none above a very large shard.
int CoarserLevels(const ImageStoreSettings& settings);

/// Gives the pixels of a shard from chunk `chunk` (of the level; its x is the shard's first) on, as
/// (depth, height, width, channels): the slices of that chunk; as many whole chunk rows as it
/// likes, or all up to the level's end; every column that the shard and the level share;
/// interleaved. Valid until the next call. Called from the calling thread, slices by slices, from
/// top to bottom.
using ShardRows = std::function<StatusOr<ConstTensorView>(const Point& chunk)>;

/// One zarr shard and, where asked for, the same area of the next levels, averaged. Pure and
/// single-threaded: same pixels, same bytes. Holds the encoded shard and, with coarser levels, a
/// third of its pixels in memory.
class ShardEncoder {
 public:
  /// `settings` is valid and outlives the encoder. `levels`: place.level's size, then the sizes of
  /// the levels to average, each half of the one before, at most CoarserLevels() of them.
  ShardEncoder(const ImageStoreSettings& settings, std::vector<Extent> levels,
               const ShardPlace& place);

  /// Called after each chunk; its error ends the work.
  void AfterChunk(std::function<Status()> called) { after_chunk_ = std::move(called); }

  /// Once. InvalidArgument for a place outside its level; errors of `rows` pass through.
  StatusOr<EncodedShard> Encode(const ShardRows& rows);
  /// Once, after Encode: the chunks of levels[1], levels[2], ...
  StatusOr<std::vector<ShardPiece>> EncodeCoarser();

 private:
  /// A level's pixels below this shard.
  struct Area {
    std::unique_ptr<std::byte[]> bytes;
    TensorView view;
  };
  struct ChunkViews {
    std::vector<ConstTensorView> views;
    std::vector<Point> corners;  ///< first pixels
    std::vector<bool> is_fill;
  };

  Status CheckPlace() const;
  Area MakeArea(std::size_t coarser) const;
  Status Prepare();
  bool IsFill(const ConstTensorView& chunk) const;
  ChunkViews Cut(const ConstTensorView& pixels) const;
  Status CopyAndHalve(const ConstTensorView& chunk, const TensorView& half);
  Status CopySlice(const ConstTensorView& chunk, std::int64_t z, const TensorView& half);
  /// The chunks of `pixels`, whose corner is a chunk's, appended to `piece`; averaged into `half`,
  /// which has the same corner, or no data.
  Status Append(const ConstTensorView& pixels, const TensorView& half, ShardPiece& piece);

  const ImageStoreSettings& settings_;
  const std::vector<Extent> levels_;
  const ShardPlace place_;
  std::function<Status()> after_chunk_ = [] { return absl::OkStatus(); };
  ChunkEncoder encoder_;
  PixelHasher hasher_;
  std::vector<std::byte> raw_, fill_row_;
  std::vector<Area> areas_;  ///< areas of levels_[1], levels_[2], ...
};

/// The zarr shard of `place` out of the pieces that cover its part of the level. The same bytes as
/// from its pixels. InvalidArgument when chunks are missing.
StatusOr<EncodedShard> AssembleShard(const ImageStoreSettings& settings, const Extent& level,
                                     const ShardPlace& place, std::span<const ShardPiece> pieces);
/// The same out of the one piece of ChunksOf with all its chunks, whose bytes are not copied.
StatusOr<EncodedShard> AssembleShard(const ImageStoreSettings& settings, const Extent& level,
                                     const ShardPlace& place, ShardPiece whole);

/// The input of the latter for one shard.
struct WholeShard {
  Extent level;  ///< size of its level
  ShardPlace place;
  ShardPiece piece;
};
/// The same for several shards, whose files are hashed side by side (Sha256OfEach).
StatusOr<std::vector<EncodedShard>> AssembleShards(const ImageStoreSettings& settings,
                                                   std::vector<WholeShard> shards);

}  // namespace patchbay::zarr
