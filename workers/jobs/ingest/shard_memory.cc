#include "workers/jobs/ingest/shard_memory.h"

#include <algorithm>

#include "runtime/core/strings.h"

namespace patchbay::workers {
namespace {

/// Two bands of rows, tiles on their way, encoder contexts.
constexpr std::uint64_t kBesideBytes = std::uint64_t{96} << 20;

std::uint64_t MemoryBytesOf(const zarr::ImageStoreSettings& store, std::int64_t pixels) {
  const std::uint64_t raw = static_cast<std::uint64_t>(pixels) *
                            static_cast<std::uint64_t>(store.channels) * SizeOf(store.dtype);
  return raw / 2 * 5 + kBesideBytes;
}

}  // namespace

std::uint64_t ShardMemoryBytes(const IngestSlide& slide, int stored_level) {
  const Extent level = StoredSizes(slide.levels)[static_cast<std::size_t>(stored_level)];
  const zarr::ImageStoreSettings& store = slide.store;
  return MemoryBytesOf(store, std::min(store.shard.y, level.y) * std::min(store.shard.x, level.x));
}

std::uint64_t ShardTaskMemoryBytes(const zarr::ImageStoreSettings& store,
                                   const MemoryBudget& limit) {
  return std::min(MemoryBytesOf(store, store.shard.y * store.shard.x),
                  limit.bytes / 100 * kMemoryUsePercent);
}

Status CheckShardFits(const IngestSlide& slide, const MemoryBudget& limit) {
  const std::uint64_t most = ShardMemoryBytes(slide, 0);
  const Status fits = CheckMemoryFits("make", most, limit);
  if (fits.ok()) return fits;
  return slide.Error(absl::StatusCode::kInvalidArgument,
                     StrCat("a zarr shard of ", slide.store.shard.y, " pixels a side needs up to ",
                            HumanBytes(most), " of memory while it is made; the limit is ",
                            HumanBytes(limit.bytes), " (", limit.limit, ")"),
                     "use a smaller --shard");
}

}  // namespace patchbay::workers
