#include "runtime/client/stream_plan.h"

#include <limits>

#include "runtime/base/json.h"

namespace patchbay::client {
namespace {

constexpr std::string_view kWhat = "stream plan";

StatusOr<std::uint64_t> Count(const Json& object, const char* key, std::uint64_t most) {
  PB_ASSIGN_OR_RETURN(const std::int64_t value, JsonInt(object, key, kWhat));
  if (value < 1 || static_cast<std::uint64_t>(value) > most) {
    return absl::InvalidArgumentError(
        StrCat("read stream plan: ", key, ": ", value, ": not allowed"));
  }
  return static_cast<std::uint64_t>(value);
}

StatusOr<Tail> ParseTail(const Json& geometry) {
  PB_ASSIGN_OR_RETURN(const std::string name, JsonString(geometry, "tail", kWhat));
  if (name == "keep") return Tail::kKeep;
  if (name == "drop") return Tail::kDrop;
  if (name == "pad") return Tail::kPad;
  if (name == "wrap") return Tail::kWrap;
  return absl::InvalidArgumentError(StrCat("read stream plan: tail: unknown value ", name));
}

StatusOr<StreamGeometry> ParseGeometry(const Json& value) {
  constexpr std::uint64_t kMax32 = std::numeric_limits<std::uint32_t>::max();
  constexpr std::uint64_t kMaxCount = std::uint64_t{1} << 40;
  StreamGeometry g;
  PB_ASSIGN_OR_RETURN(g.patches_per_epoch, Count(value, "patches_per_epoch", kMaxCount));
  PB_ASSIGN_OR_RETURN(const auto batch, Count(value, "global_batch", kMax32));
  PB_ASSIGN_OR_RETURN(const auto world, Count(value, "world_size", kMax32));
  PB_ASSIGN_OR_RETURN(const auto shard, Count(value, "shard_patches", kMax32));
  PB_ASSIGN_OR_RETURN(g.patch_bytes, Count(value, "patch_bytes", kMaxCount));
  PB_ASSIGN_OR_RETURN(g.tail, ParseTail(value));
  g.global_batch = static_cast<std::uint32_t>(batch);
  g.world_size = static_cast<std::uint32_t>(world);
  g.shard_patches = static_cast<std::uint32_t>(shard);
  return g;
}

/// The shape of a patch in its slot. A plan of another kind gives plain bytes.
StatusOr<PatchLayout> ParsePatch(const Json& plan, std::uint64_t patch_bytes) {
  PatchLayout bytes{DType::kUint8, "bytes", {static_cast<std::int64_t>(patch_bytes)}};
  const auto config = plan.find("config");
  if (config == plan.end() || !config->is_object()) return bytes;
  PB_ASSIGN_OR_RETURN(const Json* batch, JsonMember(*config, "batch", kWhat));
  PB_ASSIGN_OR_RETURN(const Json* patch, JsonMember(*config, "patch", kWhat));
  PB_ASSIGN_OR_RETURN(const Json* size, JsonMember(*patch, "size", kWhat));
  PB_ASSIGN_OR_RETURN(const std::string dtype, JsonString(*batch, "dtype", kWhat));
  PatchLayout out;
  PB_ASSIGN_OR_RETURN(out.layout, JsonString(*batch, "layout", kWhat));
  PB_ASSIGN_OR_RETURN(const std::int64_t channels, JsonInt(plan, "channels", kWhat));
  const auto known = DTypeFromName(dtype);
  if (!known.has_value() || !size->is_array() || size->size() + 2 > kMaxRank) return bytes;
  out.dtype = *known;
  const bool channels_last = out.layout == "nhwc";
  if (!channels_last) out.shape.push_back(channels);
  for (const Json& side : *size) {
    out.shape.push_back(side.is_number_integer() ? side.get<std::int64_t>() : 0);
  }
  if (channels_last) out.shape.push_back(channels);
  unsigned __int128 product = SizeOf(out.dtype);
  for (const std::int64_t side : out.shape) {
    if (side < 1 || side > 1 << 24) return bytes;
    product *= static_cast<std::uint64_t>(side);
    if (product > patch_bytes) return bytes;
  }
  return product == patch_bytes ? out : bytes;
}

}  // namespace

StatusOr<StreamPlan> ParseStreamPlan(const std::string& result) {
  PB_ASSIGN_OR_RETURN(const Json root, ParseJson(result, kWhat));
  PB_ASSIGN_OR_RETURN(const Json* geometry, JsonMember(root, "geometry", kWhat));
  StreamPlan plan;
  PB_ASSIGN_OR_RETURN(plan.geometry, ParseGeometry(*geometry));
  PB_ASSIGN_OR_RETURN(plan.text, JsonString(root, "plan", kWhat));
  plan.digest = Sha256Of(plan.text);
  PB_ASSIGN_OR_RETURN(const Json parsed, ParseJson(plan.text, kWhat));
  PB_ASSIGN_OR_RETURN(plan.patch, ParsePatch(parsed, plan.geometry.patch_bytes));
  return plan;
}

}  // namespace patchbay::client
