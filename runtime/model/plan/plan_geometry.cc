// How a plan's epochs are cut into batches, parts of ranks and shards.
#include <algorithm>
#include <utility>

#include "runtime/core/counted.h"
#include "runtime/core/strings.h"
#include "runtime/model/plan/bands.h"
#include "runtime/model/plan/plan.h"
#include "runtime/model/stream/slot_layout.h"

namespace patchbay::plan {
namespace {

constexpr std::uint32_t kShardsPerRank = 8;

std::uint64_t CeilDiv(std::uint64_t a, std::uint64_t b) { return (a + b - 1) / b; }

Status TooMuch(std::string_view key, std::string_view cause) {
  return InvalidArgument("plan stream: key '", key, "': ", cause);
}

/// Whether each rank's part of each batch is made of whole bags.
Status CheckBags(const StreamGeometry& g, std::uint32_t bag) {
  if (bag == 0) return absl::OkStatus();
  if (g.global_batch % (std::uint64_t{bag} * g.world_size) != 0) {
    return TooMuch("batch.patches", StrCat("a batch of ", g.global_batch, " patches on ",
                                           Counted(g.world_size, "rank"),
                                           ": not a whole number of bags of ", bag, " for each"));
  }
  const std::uint64_t last = g.patches_per_epoch % g.global_batch / bag;
  if (g.tail != Tail::kKeep || last % g.world_size == 0) return absl::OkStatus();
  return TooMuch("batch.tail", StrCat(Counted(last, "bag"), " in the last batch, for ",
                                      g.world_size, " ranks: choose drop, pad or wrap"));
}

/// Whether a stream can be cut so.
Status CheckCut(const StreamGeometry& g, std::uint64_t patch_bytes) {
  const std::uint64_t rank_patches = CeilDiv(g.global_batch, g.world_size);
  if (patch_bytes > kMaxSlotBytes / rank_patches) {
    return TooMuch(
        "batch.global_size",
        StrCat(rank_patches, " patches of ", HumanBytes(patch_bytes), " make a slot of more than ",
               HumanBytes(kMaxSlotBytes), ", the most there may be"));
  }
  if (BatchesPerEpoch(g) == 0) {
    return TooMuch("batch.global_size",
                   StrCat("an epoch has ", g.patches_per_epoch, " patches, a batch ",
                          g.global_batch, ": with tail: drop an epoch has no batch"));
  }
  if (PatchesInBatch(g, 0) < g.world_size) {
    return TooMuch("batch.global_size",
                   StrCat("an epoch has ", Counted(g.patches_per_epoch, "patch", "patches"),
                          ", fewer than ", Counted(g.world_size, "rank")));
  }
  return absl::OkStatus();
}

}  // namespace

StatusOr<StreamGeometry> Plan::Geometry(std::uint32_t world_size) const {
  if (world_size == 0 || world_size > config_.global_size) {
    return InvalidArgument("plan: world size ", world_size, ": not in 1..", config_.global_size,
                           " (batch.global_size)");
  }
  StreamGeometry geometry;
  geometry.patches_per_epoch = patches_per_epoch();
  geometry.global_batch = config_.global_size;
  geometry.tail = config_.tail;
  geometry.world_size = world_size;
  const std::uint64_t rank_patches = CeilDiv(config_.global_size, world_size);
  const std::uint64_t by_bytes = std::max<std::uint64_t>(1, kMaxShardBytes / layout_.PatchBytes());
  geometry.shard_patches =
      static_cast<std::uint32_t>(std::min(CeilDiv(rank_patches, kShardsPerRank), by_bytes));
  if (IsMap(config_)) {
    if (world_size != 1) return InvalidArgument("plan: a map has consumers, and no ranks");
    StatusOr<UnitRuns> bands =
        UnitRuns::OfCounts(BandsOf(config_, images_, ImageRunLengths()), geometry.global_batch);
    // So many images keep every consumer busy as they are.
    if (!bands.ok()) bands = UnitRuns::OfCounts(ImageRunLengths(), geometry.global_batch);
    PB_ASSIGN_OR_RETURN(geometry.units, std::move(bands));
  }
  PB_RETURN_IF_ERROR(CheckBags(geometry, config_.bag));
  PB_RETURN_IF_ERROR(CheckCut(geometry, layout_.PatchBytes()));
  return geometry;
}

StatusOr<std::uint64_t> RingBytes(const BatchLayout& layout, const StreamGeometry& geometry,
                                  std::uint32_t prefetch) {
  const std::uint64_t slots = std::uint64_t{prefetch} + kSlotsBesidePrefetch;
  PB_ASSIGN_OR_RETURN(const SlotLayout slot, SlotLayout::Of(layout, Capacity(geometry), false));
  const std::uint64_t slot_bytes = slot.host_stride();
  if (slot_bytes <= kMaxRingBytes / slots) return slots * slot_bytes;
  return TooMuch("batch.prefetch",
                 StrCat(slots, " slots (prefetch ", prefetch, " and ", kSlotsBesidePrefetch,
                        " more) of ", HumanBytes(slot_bytes), " make a ring of more than ",
                        HumanBytes(kMaxRingBytes), ", the most there may be"));
}

}  // namespace patchbay::plan
