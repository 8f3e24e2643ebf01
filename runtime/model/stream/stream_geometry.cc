#include "runtime/model/stream/stream_geometry.h"

#include <algorithm>

#include "runtime/core/names.h"

namespace patchbay {

namespace {

constexpr auto kTailNames = NamesInOrder<Tail>("keep", "drop", "pad", "wrap");

Status CheckUnits(const StreamGeometry& g) {
  if (g.units.patches() != g.patches_per_epoch) {
    return InvalidArgument("its units do not have the patches of the epoch");
  }
  if (g.world_size == 1 && g.tail == Tail::kKeep) return absl::OkStatus();
  return InvalidArgument("a stream with units has one rank and keeps its tails");
}

/// A batch of a stream with units.
PatchRun UnitRun(const StreamGeometry& g, std::uint64_t batch) {
  if (batch >= g.units.batches()) return {};
  const StreamUnit unit = g.units.OfBatch(batch);
  const std::uint64_t before = (batch - unit.first_batch) * g.global_batch;
  const auto count = std::min<std::uint64_t>(unit.patches - before, g.global_batch);
  return {unit.first_ordinal + before, static_cast<std::uint32_t>(count), 0};
}

}  // namespace

std::string_view NameOf(Tail tail) { return kTailNames.Of(tail); }
std::optional<Tail> TailFromName(std::string_view name) { return kTailNames.Find(name); }

Status CheckGeometry(const StreamGeometry& g) {
  const auto refuse = [](const char* cause) { return InvalidArgument(cause); };
  if (g.patches_per_epoch == 0 || g.global_batch == 0 || g.world_size == 0 ||
      g.shard_patches == 0) {
    return refuse("a count is zero");
  }
  if (g.patches_per_epoch > kMaxPatchesPerEpoch || g.global_batch > kMaxGlobalBatch ||
      g.world_size > kMaxWorldSize) {
    return refuse("a count is past its limit");
  }
  if (!g.units.empty()) PB_RETURN_IF_ERROR(CheckUnits(g));
  if (BatchesPerEpoch(g) == 0) return refuse("an epoch has no batch");
  if (PatchesInBatch(g, 0) < g.world_size) return refuse("a batch has fewer patches than ranks");
  if ((std::uint64_t{Capacity(g)} + g.shard_patches - 1) / g.shard_patches > kMaxShardsPerSlot) {
    return refuse("too many shards in a slot");
  }
  return absl::OkStatus();
}

std::uint64_t BatchesPerEpoch(const StreamGeometry& g) {
  if (!g.units.empty()) return g.units.batches();
  const std::uint64_t whole = g.patches_per_epoch / g.global_batch;
  const bool rest = g.patches_per_epoch % g.global_batch != 0;
  return whole + (rest && g.tail != Tail::kDrop ? 1 : 0);
}

std::uint32_t PatchesInBatch(const StreamGeometry& g, std::uint64_t batch) {
  if (batch >= BatchesPerEpoch(g)) return 0;
  if (!g.units.empty()) return RankRun(g, batch, 0).count;
  if (g.tail != Tail::kKeep) return g.global_batch;
  const std::uint64_t left = g.patches_per_epoch - batch * g.global_batch;
  return static_cast<std::uint32_t>(std::min<std::uint64_t>(left, g.global_batch));
}

PatchRun RankRun(const StreamGeometry& g, std::uint64_t batch, std::uint32_t rank) {
  if (!g.units.empty()) return UnitRun(g, batch);
  const std::uint64_t n = PatchesInBatch(g, batch);
  const std::uint64_t begin = rank * n / g.world_size;
  const std::uint64_t end = (rank + std::uint64_t{1}) * n / g.world_size;
  return PatchRun{batch * g.global_batch + begin, static_cast<std::uint32_t>(end - begin), 0};
}

std::uint32_t ShardsInRank(const StreamGeometry& g, std::uint64_t batch, std::uint32_t rank) {
  return (RankRun(g, batch, rank).count + g.shard_patches - 1) / g.shard_patches;
}

PatchRun ShardRun(const StreamGeometry& g, std::uint64_t batch, std::uint32_t rank,
                  std::uint32_t shard) {
  const PatchRun part = RankRun(g, batch, rank);
  const std::uint32_t begin = std::min(part.count, shard * g.shard_patches);
  const std::uint32_t count = std::min(g.shard_patches, part.count - begin);
  return PatchRun{part.first_ordinal + begin, count, begin};
}

std::uint32_t Capacity(const StreamGeometry& g) {
  if (!g.units.empty()) {
    return static_cast<std::uint32_t>(
        std::min<std::uint64_t>(g.units.most_patches(), g.global_batch));
  }
  return (PatchesInBatch(g, 0) + g.world_size - 1) / g.world_size;
}

}  // namespace patchbay
