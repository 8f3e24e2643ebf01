#include "runtime/format/zarr/shard_index.h"

#include <cstring>

#include "runtime/core/hash.h"
#include "runtime/core/outcome.h"
#include "runtime/core/strings.h"
#include "runtime/format/zarr/image_store.h"

namespace patchbay::zarr {
namespace {

constexpr std::size_t kEntryBytes = 16;
/// Bytes of an entry in addition to its index: list node, map node.
constexpr std::size_t kCacheOverheadBytes = 128;

std::size_t CostOf(const StampedIndex& index) {
  return index.entries.size() * sizeof(IndexEntry) + index.stamp.size() + kCacheOverheadBytes;
}

std::string Hex32(std::uint32_t value) { return Hex64(value).substr(8); }

Status CheckSeal(std::span<const std::byte> bytes, std::uint32_t expected) {
  std::uint32_t stored = 0;
  for (const std::byte b : bytes) stored = stored << 8 | static_cast<std::uint32_t>(b);
  if (stored == expected) return absl::OkStatus();
  return DataLoss("another shard than the store lists here (seal ", Hex32(stored), ", listed ",
                  Hex32(expected), ")");
}

}  // namespace

std::size_t IndexBytes(const ArrayMetadata& array) {
  return static_cast<std::size_t>(array.ChunksPerShard()) * kEntryBytes +
         (array.index_checksum ? kChecksumBytes : 0);
}

StatusOr<ShardIndex> DecodeIndex(const ArrayMetadata& array, std::span<const std::byte> bytes,
                                 std::uint64_t file_bytes) {
  if (array.index_checksum) {
    std::uint32_t stored;
    std::memcpy(&stored, bytes.data() + bytes.size() - kChecksumBytes, sizeof stored);
    bytes = bytes.first(bytes.size() - kChecksumBytes);
    const std::uint32_t computed = Crc32c(bytes);
    if (stored != computed) {
      return DataLoss("index crc32c mismatch (stored ", Hex32(stored), ", computed ",
                      Hex32(computed), ")");
    }
  }
  ShardIndex index(bytes.size() / kEntryBytes);
  std::memcpy(index.data(), bytes.data(), bytes.size());
  for (std::size_t i = 0; i < index.size(); ++i) {
    IndexEntry& entry = index[i];
    if (array.index_big_endian) {
      entry.offset = __builtin_bswap64(entry.offset);
      entry.size_bytes = __builtin_bswap64(entry.size_bytes);
    }
    if (entry.Absent()) continue;
    if (entry.offset > file_bytes || entry.size_bytes > file_bytes - entry.offset) {
      return DataLoss("index entry ", i, " (offset ", entry.offset, ", ", entry.size_bytes,
                      " bytes) lies outside the file of ", file_bytes, " bytes");
    }
  }
  return index;
}

StatusOr<ShardIndex> ReadIndex(const ArrayMetadata& array, const StoredBytes& file,
                               const ExpectedShard& expected) {
  const std::size_t seal = expected.seal != nullptr && array.index_at_end ? kSealBytes : 0;
  const std::size_t size = IndexBytes(array) + seal;
  if (file.size_bytes() < size) {
    return ErrorAbout(
        absl::StatusCode::kDataLoss, "read index", expected.name,
        StrCat("the file has ", file.size_bytes(), " bytes, its index alone needs ", size));
  }
  std::vector<std::byte> bytes(size);
  const std::uint64_t at = array.index_at_end ? file.size_bytes() - size : 0;
  PB_RETURN_IF_ERROR(file.Read(at, bytes, expected.name));
  auto index = DecodeIndex(array, std::span(bytes).subspan(seal), file.size_bytes());
  Status status = index.status();
  if (status.ok() && seal > 0) status = CheckSeal(std::span(bytes).first(seal), *expected.seal);
  if (!status.ok()) return About(status, "read index", expected.name);
  return index;
}

std::uint64_t IndexCache::AddArray() {
  const std::lock_guard lock(mu_);
  return ++arrays_;
}

std::size_t IndexCache::bytes() const {
  const std::lock_guard lock(mu_);
  return indexes_.cost();
}

std::shared_ptr<const StampedIndex> IndexCache::Find(const CachedShard& shard) {
  const std::lock_guard lock(mu_);
  const auto* const found = indexes_.Find(shard);
  return found == nullptr ? nullptr : *found;
}

void IndexCache::Insert(const CachedShard& shard, std::shared_ptr<const StampedIndex> index) {
  const std::lock_guard lock(mu_);
  const std::size_t cost = CostOf(*index);
  indexes_.Insert(shard, std::move(index), cost);
}

}  // namespace patchbay::zarr
