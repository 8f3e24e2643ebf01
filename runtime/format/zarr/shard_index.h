// The index of a zarr shard: where each of its inner chunks lies in the file.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "runtime/core/lru_cache.h"
#include "runtime/core/status.h"
#include "runtime/format/zarr/byte_store.h"
#include "runtime/format/zarr/metadata.h"

namespace patchbay::zarr {

/// Offset and size that mark an inner chunk which is not stored.
inline constexpr std::uint64_t kAbsent = ~std::uint64_t{0};

/// A crc32c: behind an index, and behind a tile.
inline constexpr std::size_t kChecksumBytes = 4;

/// The bytes of an inner chunk in its shard's file.
struct IndexEntry {
  std::uint64_t offset = kAbsent, size_bytes = kAbsent;
  bool Absent() const { return offset == kAbsent && size_bytes == kAbsent; }
};

/// Row-major over the shard's inner chunks; empty for a shard that has no file.
using ShardIndex = std::vector<IndexEntry>;

/// An index and the stamp of the file it was read from; empty for a shard that has none.
struct StampedIndex {
  ShardIndex entries;
  std::string stamp;
};

/// Bytes of an encoded index.
std::size_t IndexBytes(const ArrayMetadata& array);

/// Checks the checksum and that every entry lies inside the file; DataLoss names the fault.
StatusOr<ShardIndex> DecodeIndex(const ArrayMetadata& array, std::span<const std::byte> bytes,
                                 std::uint64_t file_bytes);

/// The expected properties of a shard's file.
struct ExpectedShard {
  std::string_view name;                ///< name in error messages
  const std::uint32_t* seal = nullptr;  ///< to be found before an index at the end; null: any shard
};

/// Reads the index of an open shard file, in one read. DataLoss when it is damaged or the shard is
/// another than expected.
StatusOr<ShardIndex> ReadIndex(const ArrayMetadata& array, const StoredBytes& file,
                               const ExpectedShard& expected);

/// A zarr shard among all that a process reads: its array's name in the cache, its number there.
struct CachedShard {
  std::uint64_t array = 0, shard = 0;
  bool operator==(const CachedShard&) const = default;
  template <typename H>
  friend H AbslHashValue(H h, const CachedShard& s) {
    return H::combine(std::move(h), s.array, s.shard);
  }
};

/// Thread-safe, bounded cache of decoded indexes, shared by all arrays of a process. The least
/// recently used index is dropped first.
class IndexCache {
 public:
  /// Larger `max_bytes` means fewer indexes read again, and more memory.
  explicit IndexCache(std::size_t max_bytes) : indexes_(max_bytes) {}

  /// A name for an array that was opened.
  std::uint64_t AddArray();
  std::shared_ptr<const StampedIndex> Find(const CachedShard& shard);
  /// Takes the place of one that was read of another file.
  void Insert(const CachedShard& shard, std::shared_ptr<const StampedIndex> index);
  std::size_t bytes() const;

 private:
  mutable std::mutex mu_;
  std::uint64_t arrays_ = 0;                                            // guarded by mu_
  LruCache<CachedShard, std::shared_ptr<const StampedIndex>> indexes_;  // guarded by mu_
};

}  // namespace patchbay::zarr
