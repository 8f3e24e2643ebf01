// The metadata of one Zarr array as plain values, v2 and v3 alike.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "runtime/core/dtype.h"
#include "runtime/core/tensor_view.h"
#include "runtime/format/json/json.h"
#include "runtime/format/tiles/tile_format.h"

namespace patchbay::zarr {

/// Index of an inner chunk in the array's chunk grid, or a position in elements: one value per
/// array axis.
using Coordinates = std::array<std::int64_t, kMaxRank>;

/// Largest extent of one axis.
inline constexpr std::int64_t kMaxExtent = std::int64_t{1} << 40;
/// Largest decoded inner chunk: the most one decode allocates.
inline constexpr std::int64_t kMaxChunkBytes = std::int64_t{1} << 30;
/// Largest shard index, in inner chunks of one zarr shard (16 bytes each).
inline constexpr std::int64_t kMaxChunksPerShard = std::int64_t{1} << 22;
inline constexpr std::size_t kMaxCodecs = 16;

/// One stage between stored bytes and elements, by whatever name v2 and v3 have for it.
enum class CodecKind : std::uint8_t {
  kBlosc,
  kZstd,
  kGzip,  ///< gzip or zlib framing, told apart by the stream's header
  kLz4,   ///< numcodecs: 4-byte little-endian size, then one LZ4 block
  kBz2,
  kCrc32c,
  kAdler32,
  kFletcher32,
  kShuffle,
  kDelta,
  kFixedScaleOffset,
};

/// Whether it maps elements to elements, and comes before those that see bytes.
constexpr bool IsTyped(CodecKind kind) {
  return kind == CodecKind::kDelta || kind == CodecKind::kFixedScaleOffset;
}

/// One step after the axes were transposed. Only the fields of its kind are used.
struct Codec {
  CodecKind kind = CodecKind::kZstd;
  int level = 0;
  std::int64_t element_bytes = 1;      ///< kShuffle
  bool checksum_first = false;         ///< kAdler32, kCrc32c: stored before the bytes
  double scale = 1, offset = 0;        ///< kFixedScaleOffset
  DType stored_dtype = DType::kUint8;  ///< kFixedScaleOffset: element type on disk
};

/// How one inner chunk becomes bytes.
struct CodecChain {
  bool big_endian = false;
  std::vector<int> order;  ///< stored axis i is array axis order[i]; stored in C order
  /// Chunks are tiles of that format (codec/tile_codec.h); nothing: elements as bytes.
  std::optional<tiles::TileFormat> tile;
  std::vector<Codec> codecs;  ///< in encode order; decoding applies them in reverse
};

/// The spelling of a chunk's key below its array.
enum class KeyStyle : std::uint8_t {
  kV2,       ///< 0.1.2, or "0" for rank 0
  kDefault,  ///< c/0/1/2
};

/// One array, v2 or v3, within all limits: extents may be multiplied without overflow.
struct ArrayMetadata {
  int zarr_format = 3;
  DType dtype = DType::kUint8;
  std::vector<std::int64_t> shape;
  std::vector<std::int64_t> chunk_shape;  ///< the inner chunk, which is decoded at once
  std::vector<std::int64_t> shard_shape;  ///< voxels of one file; equals chunk_shape if !sharded
  bool sharded = false;
  bool index_at_end = true;
  bool index_checksum = true;
  bool index_big_endian = false;
  KeyStyle key_style = KeyStyle::kDefault;
  char separator = '/';
  /// One element, native byte order; zero where the metadata has null.
  std::vector<std::byte> fill;
  CodecChain chain;
  std::vector<std::string> dimension_names;  ///< empty where not given
  Json attributes = Json::object();

  int rank() const { return static_cast<int>(shape.size()); }
  std::int64_t ChunkElements() const;
  std::int64_t ChunkBytes() const;
  std::int64_t ChunksPerShard() const;
  /// Files along one axis.
  std::int64_t ShardGrid(int axis) const;
  /// Inner chunks along one axis that overlap the array.
  std::int64_t ChunkGrid(int axis) const;
  /// Path of a shard (or chunk) file below the array's folder.
  std::string ShardKey(const std::int64_t* shard_index) const;
};

}  // namespace patchbay::zarr
