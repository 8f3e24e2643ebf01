// How a stream's epochs are cut into batches, ranks and shards: pure arithmetic that the scheduler,
// the workers and the trainer all do for themselves and must agree on. Counts only; which pixels a
// patch holds is runtime/model/plan's business.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>

#include "runtime/core/status.h"
#include "runtime/model/stream/limits.h"
#include "runtime/model/stream/unit_runs.h"

namespace patchbay {

/// The rule for the last, incomplete batch of an epoch.
enum class Tail : std::uint8_t {
  kKeep,  ///< kept, smaller than the others
  kDrop,  ///< left out
  kPad,   ///< filled up with patches of zeros
  kWrap,  ///< filled up with the first patches of the same epoch's order
};

inline constexpr std::array kAllTails = {Tail::kKeep, Tail::kDrop, Tail::kPad, Tail::kWrap};

/// "keep", "drop", "pad" or "wrap".
std::string_view NameOf(Tail tail);
std::optional<Tail> TailFromName(std::string_view name);

/// The counts of one stream. Part of the plan, so part of its digest.
struct StreamGeometry {
  std::uint64_t patches_per_epoch = 0;
  std::uint32_t global_batch = 1;  ///< patches of one step of all ranks together
  Tail tail = Tail::kKeep;
  std::uint32_t world_size = 1;
  std::uint32_t shard_patches = 1;  ///< most patches in one shard
  /// Where there are some, no batch crosses one, and a batch goes whole to one consumer: of any
  /// number, each a rank that it drew itself, though world_size is 1.
  UnitRuns units = {};

  bool operator==(const StreamGeometry&) const = default;
};

/// A contiguous run of patches of one batch: place in the batch and ordinals in the epoch.
struct PatchRun {
  /// In the epoch; may pass patches_per_epoch under kPad and kWrap.
  std::uint64_t first_ordinal = 0;
  std::uint32_t count = 0;
  std::uint32_t place = 0;  ///< place of the first one, in the rank's part
};

/// InvalidArgument when a count is zero or past its limit, an epoch has no batch, a batch has fewer
/// patches than ranks, a slot would have too many shards, or units do not make up the epoch.
Status CheckGeometry(const StreamGeometry& g);

std::uint64_t BatchesPerEpoch(const StreamGeometry& g);
/// Patches of batch `batch` of an epoch, all ranks; 0 past the end.
std::uint32_t PatchesInBatch(const StreamGeometry& g, std::uint64_t batch);
/// The rank's part: [rank * n / world, (rank + 1) * n / world) of the batch; all of it under units.
PatchRun RankRun(const StreamGeometry& g, std::uint64_t batch, std::uint32_t rank);
/// Shards of the rank's part of that batch.
std::uint32_t ShardsInRank(const StreamGeometry& g, std::uint64_t batch, std::uint32_t rank);
/// Shard `shard` of it, in [0, ShardsInRank).
PatchRun ShardRun(const StreamGeometry& g, std::uint64_t batch, std::uint32_t rank,
                  std::uint32_t shard);
/// Patches in the largest part that any rank gets of any batch; a slot must hold them.
std::uint32_t Capacity(const StreamGeometry& g);

}  // namespace patchbay
