// A store again: with another codec, the same pixels in the same chunks; or as it is.
#include "runtime/core/outcome.h"
#include "runtime/core/strings.h"
#include "runtime/format/json/json_forms.h"
#include "runtime/format/zarr/image_store.h"
#include "runtime/format/zarr/label_sets.h"
#include "runtime/format/zarr/tied_file.h"
#include "runtime/format/zarr/verify.h"
#include "runtime/model/source/channel_names.h"
#include "runtime/os/file.h"
#include "runtime/os/folder_listing.h"
#include "workers/jobs/convert/conversion.h"

namespace patchbay::workers {
namespace {

constexpr std::size_t kMaxFileBytes = std::size_t{1} << 31;

Status CopyBelow(TaskContext& context, const std::string& from, const std::string& to) {
  PB_RETURN_IF_ERROR(StepOf(context));
  if (!IsFolder(context.allowed, from, false)) {
    PB_ASSIGN_OR_RETURN(const std::string bytes, ReadFile(context.allowed, from, kMaxFileBytes));
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

Status OtherPixels(const Conversion& from) {
  return ErrorAbout(absl::StatusCode::kDataLoss, "convert", from.path,
                    "its pixels are not those of its pixel digest (`patchbay verify` says where)");
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
    if (!spec.settings.IsVolume()) spec.downsamples.push_back({steps[1], steps[2]});
  }
  for (const std::string& key : zarr::AllowedAttributes()) {
    if (from.attributes.contains(key)) spec.attributes[key] = from.attributes[key];
  }
  spec.channel_names = ChannelNames(from.attributes);
  spec.attributes.erase(zarr::kPixelDigestOf);
  spec.attributes["codec_plan"] = CodecPlanOf(from);
  return spec;
}

Status CheckRecode(const Conversion& /*from*/) { return absl::OkStatus(); }

Extent ShardOf(const Conversion& from) { return from.store.settings.shard; }

StatusOr<std::string> MakeShard(TaskContext& context, const Conversion& from,
                                const zarr::ShardPlace& place, const LeaseFolder& lease) {
  const zarr::ImageStoreSpec spec = SpecOf(from);
  const zarr::OpenedLevel& level = from.store.At(place);
  const auto read = [&](const Point& chunk, const TensorView& out) -> Status {
    const Extent& side = spec.settings.chunk;
    const Box box = Intersect(BoxAt({chunk.z * side.z, chunk.y * side.y, chunk.x * side.x}, side),
                              WholeOf(level.size));
    PB_RETURN_IF_ERROR(level.array.ReadRegion(zarr::RegionOf(spec.settings, box, place.channel),
                                              zarr::AlongAxes(spec.settings, out)));
    return StepOf(context);
  };
  PB_ASSIGN_OR_RETURN(const zarr::EncodedShard shard,
                      zarr::EncodeShard(spec.settings, level.size, place, read));
  if (!shard.bytes.empty()) {
    const std::string file = StrCat(from.Made(), "/", zarr::ShardFileName(place));
    PB_RETURN_IF_ERROR(lease.Put(context, file, shard.bytes, 0644));
    PB_RETURN_IF_ERROR(SyncDirectory(context.allowed, file.substr(0, file.rfind('/'))));
  }
  return DumpJson(JsonOf(shard.record));
}

Status FinishRecoded(TaskContext& context, const Conversion& from) {
  const zarr::ImageStoreSpec spec = SpecOf(from);
  std::vector<zarr::ShardRecord> records;
  for (const zarr::ShardPlace& part : PartsOf(from)) {
    PB_ASSIGN_OR_RETURN(const std::string text, ReadRecord(context, from, part));
    PB_ASSIGN_OR_RETURN(const Json json, ParseJson(text, "record of a shard"));
    PB_ASSIGN_OR_RETURN(records.emplace_back(),
                        FromJson<zarr::ShardRecord>(json, "record of a shard"));
  }
  PB_ASSIGN_OR_RETURN(const zarr::StoreRoots roots, zarr::CombineRoots(spec, records));
  if (!from.store.digests_tiles && roots.pixels != from.store.recorded->pixels) {
    return OtherPixels(from);
  }
  PB_RETURN_IF_ERROR(zarr::DraftStoreMetadata(context.allowed, from.Made(), spec, roots));
  const auto colours = zarr::ReadTied(
      context.allowed, StrCat(from.path, "/", zarr::kStainColoursFile), roots.pixels);
  if (colours.ok()) {
    PB_RETURN_IF_ERROR(ReplaceFile(context.allowed,
                                   StrCat(from.Made(), "/", zarr::kStainColoursFile),
                                   zarr::TiedBytes(AsBytes(*colours), roots.pixels)));
  }
  const std::string labels = StrCat(from.path, "/", zarr::kLabelsFolder);
  if (!IsFolder(context.allowed, labels, false)) return absl::OkStatus();
  return CopyBelow(context, labels, StrCat(from.Made(), "/", zarr::kLabelsFolder));
}

Status CheckKept(const Conversion& from) {
  if (from.store.levels.front().array.metadata().chain.tile) return absl::OkStatus();
  return CannotConvert(from,
                       "the store has no kept tiles; `patchbay ingest SLIDE --codec keep` takes "
                       "them of its slide");
}

/// A copy of every file, whose tiles are decoded and held against both digests.
Status FinishCopied(TaskContext& context, const Conversion& from) {
  PB_RETURN_IF_ERROR(CopyBelow(context, from.path, from.Made()));
  const auto step = [&context](std::int64_t, std::int64_t) { return StepOf(context); };
  PB_ASSIGN_OR_RETURN(const zarr::VerifyReport report,
                      zarr::VerifyStore(context.allowed, from.Made(), {}, step));
  if (report.faults > 0) {
    return ErrorAbout(absl::StatusCode::kDataLoss, "convert", from.path, report.bad.front());
  }
  return report.Clean() ? absl::OkStatus() : OtherPixels(from);
}

}  // namespace

Json CodecPlanOf(const Conversion& from) {
  Json plan = from.attributes.value("codec_plan", Json::object());
  if (from.options.to == "keep") return plan;
  plan["codec"] = from.options.to;
  plan["codec_level"] = from.options.codec_level;
  for (const char* of_keep : {"no_statistics", "self_contained"}) plan.erase(of_keep);
  if (from.store.settings.axes == zarr::StoreAxes::kCyx) {
    plan["chunk"] = from.store.settings.chunk.x;
    plan["shard"] = from.store.settings.shard.x;
  }
  return plan;
}

const ConversionTarget kRecodedStore = {CheckRecode, ShardOf, MakeShard, FinishRecoded};
const ConversionTarget kCopiedStore = {CheckKept, nullptr, nullptr, FinishCopied};

}  // namespace patchbay::workers
