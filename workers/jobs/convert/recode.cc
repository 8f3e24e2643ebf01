// A store again with another codec: the same pixels in the same chunks.
#include "runtime/core/outcome.h"
#include "runtime/core/strings.h"
#include "runtime/format/zarr/image_store.h"
#include "runtime/format/zarr/label_sets.h"
#include "runtime/os/file.h"
#include "runtime/os/folder_listing.h"
#include "workers/jobs/convert/conversion.h"

namespace patchbay::workers {
namespace {

constexpr std::size_t kMaxLabelFileBytes = std::size_t{1} << 31;

Status CopyBelow(TaskContext& context, const std::string& from, const std::string& to) {
  PB_RETURN_IF_ERROR(StepOf(context));
  if (!IsFolder(context.allowed, from, false)) {
    PB_ASSIGN_OR_RETURN(const std::string bytes,
                        ReadFile(context.allowed, from, kMaxLabelFileBytes));
    return ReplaceFile(context.allowed, to, AsBytes(bytes), 0666);
  }
  PB_RETURN_IF_ERROR(MakeDirectories(context.allowed, to));
  PB_ASSIGN_OR_RETURN(const std::vector<std::string> names, ListFolder(context.allowed, from));
  for (const std::string& name : names) {
    if (name == zarr::kLabelStagingFolder) continue;
    PB_RETURN_IF_ERROR(CopyBelow(context, StrCat(from, "/", name), StrCat(to, "/", name)));
  }
  return absl::OkStatus();
}

zarr::ImageStoreSpec SpecOf(const Conversion& from) {
  zarr::ImageStoreSpec spec;
  spec.settings = from.store.settings;
  spec.settings.codec = zarr::StoreCodecFromName(from.options.to).value();
  spec.settings.codec_level = static_cast<int>(from.options.codec_level);
  const Json& array = from.store.documents.at(from.store.levels.front().path + "/zarr.json");
  spec.settings.fill_value = array.value("fill_value", 0.0);
  spec.spacing = from.layout.spacing;
  for (std::size_t i = 0; i < from.store.levels.size(); ++i) {
    spec.levels.push_back(from.store.levels[i].size);
    const auto& steps = from.layout.levels[i].steps;
    if (spec.settings.axes == zarr::StoreAxes::kCyx)
      spec.downsamples.push_back({steps[1], steps[2]});
  }
  for (const std::string& key : zarr::AllowedAttributes()) {
    if (from.attributes.contains(key)) spec.attributes[key] = from.attributes[key];
  }
  spec.attributes.erase(zarr::kPixelDigestOf);
  spec.attributes["codec_plan"] = CodecPlanOf(from);
  return spec;
}

}  // namespace

Json CodecPlanOf(const Conversion& from) {
  Json plan = from.attributes.value("codec_plan", Json::object());
  plan["codec"] = from.options.to;
  plan["codec_level"] = from.options.codec_level;
  plan.erase("no_statistics");
  if (from.store.settings.axes == zarr::StoreAxes::kCyx) {
    plan["chunk"] = from.store.settings.chunk.x;
    plan["shard"] = from.store.settings.shard.x;
  }
  return plan;
}

StatusOr<zarr::StoreRoots> RecodeStore(TaskContext& context, const Conversion& from,
                                       const std::string& staging) {
  const zarr::ImageStoreSpec spec = SpecOf(from);
  PB_RETURN_IF_ERROR(MakeDirectories(context.allowed, staging));
  std::vector<zarr::ShardRecord> records;
  for (std::size_t l = 0; l < spec.levels.size(); ++l) {
    const zarr::OpenedLevel& level = from.store.levels[l];
    const auto read = [&](const Point& chunk, const TensorView& out) -> Status {
      const Extent& side = spec.settings.chunk;
      const Box box = Intersect(BoxAt({chunk.z * side.z, chunk.y * side.y, chunk.x * side.x}, side),
                                WholeOf(level.size));
      PB_RETURN_IF_ERROR(level.array.ReadRegion(zarr::RegionOf(spec.settings, box),
                                                zarr::AlongAxes(spec.settings, out)));
      return StepOf(context);
    };
    const Extent grid = zarr::ShardGridOf(spec.settings, level.size);
    for (std::int64_t i = 0; i < grid.Pixels(); ++i) {
      const zarr::ShardPlace place{static_cast<int>(l), CellAt(grid, i)};
      PB_ASSIGN_OR_RETURN(zarr::EncodedShard shard,
                          zarr::EncodeShard(spec.settings, level.size, place, read));
      PB_RETURN_IF_ERROR(zarr::WriteShardFile(context.allowed, staging, shard));
      records.push_back(std::move(shard.record));
      PB_RETURN_IF_ERROR(StepOf(context));
    }
  }
  PB_ASSIGN_OR_RETURN(zarr::StoreRoots roots, zarr::CombineRoots(spec, records));
  if (!from.store.digests_tiles && roots.pixels != from.store.recorded->pixels) {
    return ErrorAbout(
        absl::StatusCode::kDataLoss, "convert", from.path,
        "its pixels are not those of its pixel digest (`patchbay verify` says where)");
  }
  PB_RETURN_IF_ERROR(zarr::DraftStoreMetadata(context.allowed, staging, spec, roots));
  const std::string labels = StrCat(from.path, "/", zarr::kLabelsFolder);
  if (!IsFolder(context.allowed, labels, false)) return roots;
  PB_RETURN_IF_ERROR(CopyBelow(context, labels, StrCat(staging, "/", zarr::kLabelsFolder)));
  return roots;
}

}  // namespace patchbay::workers
