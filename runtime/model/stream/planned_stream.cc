#include "runtime/model/stream/planned_stream.h"

#include <optional>
#include <utility>
#include <vector>

#include "runtime/model/stream/limits.h"

namespace patchbay {
namespace {

constexpr std::string_view kWhat = "stream plan";

Status Bad(std::string_view key, std::string_view cause) {
  return absl::InvalidArgumentError(StrCat("read stream plan: ", key, ": ", cause));
}

StatusOr<std::uint64_t> Count(const Json& geometry, const char* key, std::uint64_t most) {
  PB_ASSIGN_OR_RETURN(const std::int64_t value, JsonInt(geometry, key, kWhat));
  if (value < 1 || static_cast<std::uint64_t>(value) > most) {
    return Bad(key, StrCat(value, " is not in 1..", most));
  }
  return static_cast<std::uint64_t>(value);
}

StatusOr<std::uint32_t> Count32(const Json& geometry, const char* key, std::uint32_t most) {
  PB_ASSIGN_OR_RETURN(const std::uint64_t value, Count(geometry, key, most));
  return static_cast<std::uint32_t>(value);
}

StatusOr<StreamGeometry> GeometryFromJson(const Json& value) {
  StreamGeometry g;
  PB_ASSIGN_OR_RETURN(g.patches_per_epoch, Count(value, "patches_per_epoch", kMaxPatchesPerEpoch));
  PB_ASSIGN_OR_RETURN(g.global_batch, Count32(value, "global_batch", kMaxGlobalBatch));
  PB_ASSIGN_OR_RETURN(g.world_size, Count32(value, "world_size", kMaxWorldSize));
  PB_ASSIGN_OR_RETURN(g.shard_patches, Count32(value, "shard_patches", kMaxGlobalBatch));
  PB_ASSIGN_OR_RETURN(const std::string name, JsonString(value, "tail", kWhat));
  const std::optional<Tail> tail = TailFromName(name);
  if (!tail) return Bad("tail", StrCat("unknown value ", name));
  g.tail = *tail;
  if (const Status cut = CheckGeometry(g); !cut.ok()) return Bad("geometry", MessageOf(cut));
  return g;
}

/// Optional: (epoch, batch) at which the job begins.
StatusOr<std::optional<Position>> StartFromJson(const Json& geometry) {
  const auto found = geometry.find("start");
  if (found == geometry.end()) return std::nullopt;
  const bool whole = found->is_array() && found->size() == 2 && (*found)[0].is_number_unsigned() &&
                     (*found)[1].is_number_unsigned();
  if (!whole || (*found)[0].get<std::uint64_t>() > kMaxEpoch) {
    return Bad("start", "expected [epoch, batch]");
  }
  return Position{(*found)[0].get<std::uint32_t>(), (*found)[1].get<std::uint64_t>()};
}

/// Optional: which code made the plan.
StatusOr<std::string> VersionsFromJson(const Json& geometry) {
  if (!geometry.contains("versions")) return std::string();
  PB_ASSIGN_OR_RETURN(std::string text, JsonString(geometry, "versions", kWhat));
  if (text.size() > kMaxByteVersions) return Bad("versions", "too long");
  return text;
}

/// Optional: [[patches an image, images], ...] of an epoch in sequential order.
StatusOr<ImageRuns> ImageRunsFromJson(const Json& geometry, std::uint64_t patches) {
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

}  // namespace

std::string EncodePlannedStream(const PlannedStream& stream) {
  const StreamGeometry& g = stream.geometry;
  Json geometry = {{"patches_per_epoch", g.patches_per_epoch},
                   {"global_batch", g.global_batch},
                   {"tail", NameOf(g.tail)},
                   {"world_size", g.world_size},
                   {"shard_patches", g.shard_patches},
                   {"numerics", NameOf(stream.numerics)}};
  if (stream.start) geometry["start"] = {stream.start->epoch, stream.start->batch};
  if (!stream.byte_versions.empty()) geometry["versions"] = stream.byte_versions;
  if (!stream.images.empty()) {
    Json& runs = geometry["image_runs"] = Json::array();
    for (const ImageRuns::Run& run : stream.images.runs()) {
      runs.push_back({run.patches_per_image, run.images});
    }
  }
  return DumpJson({{"plan", stream.plan},
                   {"manifest", stream.manifest},
                   {"geometry", std::move(geometry)},
                   {"skipped", stream.skipped}});
}

StatusOr<PlannedStream> DecodePlannedStream(std::string_view text) {
  PB_ASSIGN_OR_RETURN(Json root, ParseJson(text, kWhat));
  PB_ASSIGN_OR_RETURN(const Json* geometry, JsonMember(root, "geometry", kWhat));
  PlannedStream stream;
  PB_ASSIGN_OR_RETURN(stream.geometry, GeometryFromJson(*geometry));
  PB_ASSIGN_OR_RETURN(const std::string name, JsonString(*geometry, "numerics", kWhat));
  const std::optional<Numerics> numerics = NumericsFromName(name);
  if (!numerics) return Bad("numerics", StrCat("unknown value ", name));
  stream.numerics = *numerics;
  PB_ASSIGN_OR_RETURN(stream.start, StartFromJson(*geometry));
  PB_ASSIGN_OR_RETURN(stream.byte_versions, VersionsFromJson(*geometry));
  PB_ASSIGN_OR_RETURN(stream.images,
                      ImageRunsFromJson(*geometry, stream.geometry.patches_per_epoch));
  PB_ASSIGN_OR_RETURN(stream.plan, JsonString(root, "plan", kWhat));
  PB_RETURN_IF_ERROR(JsonMember(root, "manifest", kWhat).status());
  stream.manifest = std::move(root["manifest"]);
  if (!stream.manifest.is_object()) return Bad("manifest", "not an object");
  if (root.contains("skipped")) stream.skipped = std::move(root["skipped"]);
  if (!stream.skipped.is_object()) return Bad("skipped", "not an object");
  return stream;
}

}  // namespace patchbay
