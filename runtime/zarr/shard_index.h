// The index of a zarr shard: where each of its inner chunks lies in the file.
#pragma once

#include <cstddef>
#include <cstdint>
#include <list>
#include <memory>
#include <mutex>
#include <span>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "runtime/base/status.h"
#include "runtime/zarr/file_cache.h"
#include "runtime/zarr/metadata.h"

namespace patchbay::zarr {

/// Offset and size that mark an inner chunk which is not stored.
inline constexpr std::uint64_t kAbsent = ~std::uint64_t{0};

struct IndexEntry {
  std::uint64_t offset = kAbsent, size_bytes = kAbsent;
  bool Absent() const { return offset == kAbsent && size_bytes == kAbsent; }
};

/// Row-major over the shard's inner chunks; empty for a shard that has no file.
using ShardIndex = std::vector<IndexEntry>;

/// Bytes of an encoded index.
std::size_t IndexBytes(const ArrayMetadata& array);

/// Checks the checksum and that every entry lies inside the file; DataLoss says what is wrong.
StatusOr<ShardIndex> DecodeIndex(const ArrayMetadata& array, std::span<const std::byte> bytes,
                                 std::uint64_t file_bytes);

/// What a shard's file should be.
struct ExpectedShard {
  std::string_view name;                ///< for errors
  const std::uint32_t* seal = nullptr;  ///< to be found before an index at the end; null: any shard
};

/// Reads the index of an open shard file, in one read. DataLoss when it is damaged or the shard is
/// another than expected.
StatusOr<ShardIndex> ReadIndex(const ArrayMetadata& array, const CachedFile& file,
                               const ExpectedShard& expected);

/// Thread-safe, bounded cache of decoded indexes by the shard's number.
class IndexCache {
 public:
  explicit IndexCache(std::size_t max_bytes) : max_bytes_(max_bytes) {}

  std::shared_ptr<const ShardIndex> Find(std::uint64_t shard);
  void Insert(std::uint64_t shard, std::shared_ptr<const ShardIndex> index);

 private:
  using Entry = std::pair<std::uint64_t, std::shared_ptr<const ShardIndex>>;

  const std::size_t max_bytes_;
  std::mutex mu_;
  std::size_t bytes_ = 0;                                                   // guarded by mu_
  std::list<Entry> recent_;                                                 // guarded by mu_
  std::unordered_map<std::uint64_t, std::list<Entry>::iterator> by_shard_;  // guarded by mu_
};

}  // namespace patchbay::zarr
