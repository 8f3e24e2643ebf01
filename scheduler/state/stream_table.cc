#include "scheduler/state/stream_table.h"

#include "runtime/base/json.h"
#include "scheduler/policy/limits.h"

namespace patchbay::scheduler {
namespace {

StatusOr<std::uint64_t> Bounded(const Json& geometry, const char* key, std::uint64_t most) {
  PB_ASSIGN_OR_RETURN(const std::int64_t value, JsonInt(geometry, key, "stream geometry"));
  if (value < 1 || static_cast<std::uint64_t>(value) > most) {
    return absl::InvalidArgumentError(
        StrCat("read stream geometry: ", key, ": ", value, " is not within 1 and ", most));
  }
  return static_cast<std::uint64_t>(value);
}

StatusOr<Tail> ReadTail(const Json& geometry) {
  PB_ASSIGN_OR_RETURN(const std::string name, JsonString(geometry, "tail", "stream geometry"));
  if (name == "keep") return Tail::kKeep;
  if (name == "drop") return Tail::kDrop;
  if (name == "pad") return Tail::kPad;
  if (name == "wrap") return Tail::kWrap;
  return absl::InvalidArgumentError(StrCat("read stream geometry: tail: unknown value ", name));
}

StatusOr<protocol::Numerics> ReadNumerics(const Json& geometry) {
  PB_ASSIGN_OR_RETURN(const std::string name, JsonString(geometry, "numerics", "stream geometry"));
  if (name == "cpu") return protocol::Numerics::kCpu;
  if (name == "cuda") return protocol::Numerics::kCuda;
  if (name == "strict") return protocol::Numerics::kStrict;
  return absl::InvalidArgumentError(StrCat("read stream geometry: numerics: unknown value ", name));
}

/// Optional: [[patches an image, images], ...] of an epoch in sequential order.
StatusOr<ImageRuns> ReadImageRuns(const Json& geometry, std::uint64_t patches) {
  const auto found = geometry.find("image_runs");
  if (found == geometry.end()) return ImageRuns();
  const auto count = [](const Json& value) {
    return value.is_number_unsigned() ? value.get<std::uint64_t>() : 0;
  };
  std::vector<ImageRuns::Run> runs;
  if (found->is_array() && found->size() <= kMaxImageRuns) {
    for (const Json& run : *found) {
      const bool pair = run.is_array() && run.size() == 2;
      runs.push_back(pair ? ImageRuns::Run{count(run[0]), count(run[1])} : ImageRuns::Run{});
    }
  }
  return ImageRuns::Of(runs, patches);
}

StatusOr<std::string> TextOf(const Json& root, const char* key) {
  PB_ASSIGN_OR_RETURN(const Json* member, JsonMember(root, key, "stream plan"));
  return member->is_string() ? member->get<std::string>() : DumpJson(*member);
}

Status CheckGeometry(const StreamGeometry& g) {
  if (BatchesPerEpoch(g) == 0) {
    return absl::InvalidArgumentError("read stream geometry: an epoch has no batch");
  }
  if (PatchesInBatch(g, 0) < g.world_size) {
    return absl::InvalidArgumentError("read stream geometry: a batch has fewer patches than ranks");
  }
  const std::uint64_t rank_patches = (g.global_batch + g.world_size - 1) / g.world_size;
  if (g.patch_bytes > kMaxSlotBytes / rank_patches) {
    return absl::InvalidArgumentError("read stream geometry: a slot would be too large");
  }
  if ((rank_patches + g.shard_patches - 1) / g.shard_patches > kMaxShardsPerSlot) {
    return absl::InvalidArgumentError("read stream geometry: too many shards in a slot");
  }
  return absl::OkStatus();
}

}  // namespace

Status ReadStreamPlan(const std::string& result, std::uint32_t world_size, Stream& stream) {
  PB_ASSIGN_OR_RETURN(const Json root, ParseJson(result, "stream plan"));
  PB_ASSIGN_OR_RETURN(const Json* geometry, JsonMember(root, "geometry", "stream plan"));
  StreamGeometry& g = stream.geometry;
  PB_ASSIGN_OR_RETURN(g.patches_per_epoch,
                      Bounded(*geometry, "patches_per_epoch", kMaxPatchesPerEpoch));
  PB_ASSIGN_OR_RETURN(const std::uint64_t batch,
                      Bounded(*geometry, "global_batch", kMaxGlobalBatch));
  PB_ASSIGN_OR_RETURN(const std::uint64_t world, Bounded(*geometry, "world_size", kMaxWorldSize));
  PB_ASSIGN_OR_RETURN(const std::uint64_t shard,
                      Bounded(*geometry, "shard_patches", kMaxGlobalBatch));
  PB_ASSIGN_OR_RETURN(g.patch_bytes, Bounded(*geometry, "patch_bytes", kMaxSlotBytes));
  PB_ASSIGN_OR_RETURN(g.tail, ReadTail(*geometry));
  PB_ASSIGN_OR_RETURN(stream.numerics, ReadNumerics(*geometry));
  if (world != world_size) {
    return absl::InvalidArgumentError(
        StrCat("read stream geometry: it is for ", world, " ranks, the job for ", world_size));
  }
  g.global_batch = static_cast<std::uint32_t>(batch);
  g.world_size = static_cast<std::uint32_t>(world);
  g.shard_patches = static_cast<std::uint32_t>(shard);
  PB_RETURN_IF_ERROR(CheckGeometry(g));
  PB_ASSIGN_OR_RETURN(stream.images, ReadImageRuns(*geometry, g.patches_per_epoch));
  PB_ASSIGN_OR_RETURN(stream.plan, TextOf(root, "plan"));
  PB_ASSIGN_OR_RETURN(stream.manifest, TextOf(root, "manifest"));
  stream.plan_digest = Sha256Of(stream.plan);
  return absl::OkStatus();
}

Position After(const StreamGeometry& geometry, Position at) {
  if (at.batch + 1 < BatchesPerEpoch(geometry)) return {at.epoch, at.batch + 1};
  return {at.epoch + 1, 0};
}

Position SkipEmpty(const StreamGeometry& geometry, std::uint32_t rank, Position at) {
  if (at.batch >= BatchesPerEpoch(geometry)) at = {at.epoch + 1, 0};
  if (RankRun(geometry, at.batch, rank).count == 0) at = After(geometry, at);
  return at;
}

}  // namespace patchbay::scheduler
