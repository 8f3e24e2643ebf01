#include "runtime/model/stream/planned_stream.h"

#include <map>
#include <utility>
#include <vector>

#include "runtime/format/json/json_stream.h"
#include "runtime/model/stream/limits.h"
#include "runtime/model/stream/stream_forms.h"

namespace patchbay {

template <>
struct FieldsOf<ImageRuns::Run> {
  static constexpr auto List() {
    using Run = ImageRuns::Run;
    return AsArray(Field("patches_per_image", &Run::patches_per_image),
                   Field("images", &Run::images));
  }
};

namespace {

constexpr std::string_view kWhat = "read stream plan";

/// The part that the scheduler reads.
struct GeometryText {
  std::uint64_t patches_per_epoch = 0;
  std::uint32_t global_batch = 0, world_size = 0, shard_patches = 0;
  Tail tail = Tail::kKeep;
  Numerics numerics = Numerics::kCpu;
  std::optional<Position> start;
  std::string versions;  ///< PlannedStream::byte_versions
  std::vector<ImageRuns::Run> image_runs;
  std::vector<UnitRuns::Run> units;

  StatusOr<StreamGeometry> Geometry() const {
    PB_ASSIGN_OR_RETURN(UnitRuns cut, UnitRuns::Of(units, global_batch));
    return StreamGeometry{patches_per_epoch, global_batch,  tail,
                          world_size,        shard_patches, std::move(cut)};
  }
  Status Check() const {
    if (versions.size() > kMaxByteVersions) return InvalidArgument("versions: too long");
    PB_ASSIGN_OR_RETURN(const StreamGeometry geometry, Geometry());
    return CheckGeometry(geometry);
  }
  static constexpr auto Fields() {
    using T = GeometryText;
    return AsObject(
        Field("patches_per_epoch", &T::patches_per_epoch).Required().Within(1, kMaxPatchesPerEpoch),
        Field("global_batch", &T::global_batch).Required().Within(1, kMaxGlobalBatch),
        Field("world_size", &T::world_size).Required().Within(1, kMaxWorldSize),
        Field("shard_patches", &T::shard_patches).Required().Within(1, kMaxGlobalBatch),
        Field("tail", &T::tail).Required(), Field("numerics", &T::numerics).Required(),
        Field("start", &T::start), Field("versions", &T::versions),
        Field("image_runs", &T::image_runs).Counted(0, kMaxImageRuns),
        Field("units", &T::units).Counted(0, kMaxUnitRuns));
  }
};

struct PlannedText {
  std::string plan;
  Json manifest = Json::object();
  GeometryText geometry;
  Json skipped = Json::object();

  Status Check() const {
    if (manifest.is_object() && skipped.is_object()) return absl::OkStatus();
    return InvalidArgument("manifest or skipped: not an object");
  }
  static constexpr auto Fields() {
    using T = PlannedText;
    return AsObject(Field("plan", &T::plan).Required(), Field("manifest", &T::manifest).Required(),
                    Field("geometry", &T::geometry).Required(), Field("skipped", &T::skipped));
  }
};

}  // namespace

std::string EncodePlannedStream(const PlannedStream& stream) {
  const StreamGeometry& g = stream.geometry;
  PlannedText text;
  text.plan = stream.plan;
  text.geometry = {g.patches_per_epoch,
                   g.global_batch,
                   g.world_size,
                   g.shard_patches,
                   g.tail,
                   stream.numerics,
                   stream.start,
                   stream.byte_versions,
                   stream.images.runs(),
                   g.units.runs()};
  text.skipped = stream.skipped;
  std::map<std::string, std::string> members;
  const Json json = JsonOf(text);
  for (const auto& [key, value] : json.items()) members[key] = DumpJson(value);
  members["manifest"] = stream.manifest;
  return JoinMembers(members);
}

StatusOr<PlannedStream> DecodePlannedStream(std::string_view text) {
  PB_ASSIGN_OR_RETURN(const JsonMembers members, MembersOfJson(text, kWhat));
  PlannedStream stream;
  Json json = Json::object();
  for (const auto& [key, member] : members) {
    if (key == "manifest" && member.starts_with('{')) {
      json[key] = Json::object();
      stream.manifest = member;
    } else {
      PB_ASSIGN_OR_RETURN(json[key], ParseJson(member, kWhat));
    }
  }
  PB_ASSIGN_OR_RETURN(PlannedText read, FromJson<PlannedText>(json, kWhat));
  stream.plan = std::move(read.plan);
  PB_ASSIGN_OR_RETURN(stream.geometry, read.geometry.Geometry());
  stream.numerics = read.geometry.numerics;
  stream.skipped = std::move(read.skipped);
  stream.start = read.geometry.start;
  stream.byte_versions = std::move(read.geometry.versions);
  if (read.geometry.image_runs.empty()) return stream;
  PB_ASSIGN_OR_RETURN(stream.images,
                      ImageRuns::Of(read.geometry.image_runs, stream.geometry.patches_per_epoch));
  return stream;
}

}  // namespace patchbay
