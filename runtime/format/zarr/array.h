// Reading one Zarr array from a file system. Two stages, so that a worker fetches the bytes of the
// next patch while it decodes this one; ReadRegion does both.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "runtime/core/status.h"
#include "runtime/core/tensor_view.h"
#include "runtime/format/zarr/byte_store.h"
#include "runtime/format/zarr/codec/chunk_codec.h"
#include "runtime/format/zarr/shard_index.h"
#include "runtime/os/folders.h"

namespace patchbay::zarr {

/// Half-open box of elements, one entry per array axis.
struct Region {
  Coordinates origin{};
  Coordinates shape{};
};

/// Encoded bytes beyond this cannot be an encoding of a chunk; reading them would be a bomb.
std::uint64_t MaxEncodedBytes(const ArrayMetadata& array);

/// The encoded bytes of one inner chunk inside a FetchedRegion.
struct FetchedChunk {
  Coordinates chunk{};
  std::size_t begin = 0, size_bytes = 0;
  bool absent = false;  ///< not stored: every element is the fill value
};

/// Reused from region to region, so that its memory is allocated (and cleared) once: `bytes` only
/// grows, and bytes beyond the chunks' ranges are stale.
struct FetchedRegion {
  Region region;
  std::vector<FetchedChunk> chunks;
  std::vector<std::byte> bytes;
};

/// How a shard's file is known again.
struct ShardMarks {
  std::uint32_t seal = 0;       ///< found before its index
  std::uint32_t file_bits = 0;  ///< the first of its SHA-256
};

/// The caches that arrays share: the descriptors (inside the byte store) and indexes of a process.
struct ArrayOptions {
  /// Cache of decoded indexes; null: a private cache of kOwnIndexBytes.
  std::shared_ptr<IndexCache> indexes;
};
inline constexpr std::size_t kOwnIndexBytes = std::size_t{64} << 20;
inline constexpr std::size_t kOwnOpenFiles = 32;

/// An opened array. All methods are const and thread-safe as long as each thread has its own
/// FetchedRegion and ChunkScratch. Shard indexes and file descriptors are cached, so a warm inner
/// chunk costs exactly one pread.
///
/// Errors name the store's folder, chunk key and inner chunk; DataLoss: the bytes on disk are wrong
/// (checksum, truncation, impossible index), or a file of ExpectFiles is missing or replaced.
/// Aborted: a file changed after it was opened or its index was read. A shard with an expected
/// digest is then read whole, and stays usable if the digest still holds.
class Array {
 public:
  /// The array under the key `key` of a store. It keeps a compact form of the metadata: attributes
  /// are dropped.
  static StatusOr<Array> Open(std::shared_ptr<ByteStore> store, const std::string& key,
                              const ArrayOptions& options = {});
  /// The array in a folder, with kOwnOpenFiles descriptors of its own.
  static StatusOr<Array> Open(const Folders& allowed, const std::string& path,
                              const ArrayOptions& options = {});
  Array(Array&&) noexcept;
  Array& operator=(Array&&) noexcept;
  ~Array();

  /// Says which zarr shards have a file, row-major over the shard grid: one of them that is gone is
  /// DataLoss from then on, no longer the fill value; with `marks`, so is one that holds another.
  /// InvalidArgument: not one entry per shard, or marks for an array whose shards have no seals
  /// (their index is not at the end). Call before other threads read.
  Status ExpectFiles(std::vector<bool> has_file, std::vector<ShardMarks> marks = {});

  const ArrayMetadata& metadata() const;
  /// The name in errors.
  std::string path() const;
  /// Approximate memory in bytes, without the shared caches.
  std::size_t MemoryBytes() const;

  /// I/O only. The region must lie inside the array (InvalidArgument).
  Status Fetch(const Region& region, FetchedRegion& out) const;
  /// CPU only. `out` has the array's dtype and the region's shape, axes in array order, any
  /// strides.
  Status Decode(const FetchedRegion& fetched, const TensorView& out, ChunkScratch& scratch) const;
  /// Fetch and Decode with scratch kept inside the array.
  Status ReadRegion(const Region& region, const TensorView& out) const;

  /// The two stages for one inner chunk. FetchChunk puts its bytes at `begin` of `bytes`, which
  /// grows where needed and never shrinks. DecodeChunk writes the part of the chunk inside
  /// `region`, whose elements `out` holds, and leaves the rest of `out` alone.
  StatusOr<FetchedChunk> FetchChunk(const Coordinates& chunk, std::vector<std::byte>& bytes,
                                    std::size_t begin) const;
  Status DecodeChunk(const FetchedChunk& chunk, std::span<const std::byte> bytes,
                     const Region& region, const TensorView& out, ChunkScratch& scratch) const;

 private:
  struct State;
  /// "read chunk: PATH/0/c/0/1/2: chunk (0,3,1): ...".
  Status AboutChunk(const Status& status, const Coordinates& chunk) const;
  explicit Array(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace patchbay::zarr
