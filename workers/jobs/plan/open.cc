// One group of a dataset's images: opened and hashed.
#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>
#include <vector>

#include "runtime/plan/body_histogram.h"
#include "runtime/plan/image_volumes.h"
#include "workers/access/planned_images.h"
#include "workers/access/stamps.h"
#include "workers/jobs/plan/image_label_set.h"
#include "workers/jobs/plan/image_row.h"
#include "workers/jobs/plan/stream_plan.h"
#include "workers/jobs/plan/table_rows.h"
#include "workers/jobs/task/image_digest.h"
#include "workers/jobs/task/store_attributes.h"
#include "workers/sources/image_places.h"
#include "workers/sources/image_source.h"

namespace patchbay::workers {
namespace {

constexpr std::string_view kWhat = "stream.open";
constexpr std::size_t kMaxFaultBytes = 512;
constexpr std::string_view kStoreKind = "zarr";  ///< ImageLayout::kind

struct Group {
  std::vector<std::string> paths;
  std::int64_t first = 0;
  std::size_t level = 0;
  plan::Magnification magnification;
  bool needs_stain = false;
  plan::VolumeNeeds volume;
  bool skip_bad = false;
  std::optional<ListedRows> table;         ///< all of its rows
  std::string label_set;                   ///< "": the stream has no labels
  std::optional<plan::RunConfig> sampled;  ///< where sampling needs places
};

StatusOr<Group> GroupOf(TaskContext& context) {
  Group group;
  if (context.inputs.size() != 1) {
    return absl::InternalError("stream.open: not the list of images alone");
  }
  PB_ASSIGN_OR_RETURN(const Json list, ParseJson(context.inputs[0], "list of images"));
  context.inputs.clear();
  PB_ASSIGN_OR_RETURN(const std::vector<std::string> paths, PathsFromJson(list));
  PB_ASSIGN_OR_RETURN(group.first, JsonInt(context.payload, "first", kWhat));
  PB_ASSIGN_OR_RETURN(const std::int64_t count, JsonInt(context.payload, "count", kWhat));
  PB_ASSIGN_OR_RETURN(const std::int64_t level, JsonInt(context.payload, "level", kWhat));
  if (context.payload.contains("magnification")) {
    PB_ASSIGN_OR_RETURN(group.magnification,
                        plan::MagnificationFromJson(context.payload["magnification"]));
  }
  group.needs_stain = context.payload.contains("stain");
  if (context.payload.contains("volume")) {
    PB_ASSIGN_OR_RETURN(group.volume, plan::VolumeNeedsFromJson(context.payload["volume"]));
  }
  PB_ASSIGN_OR_RETURN(const std::string bad, JsonString(context.payload, "on_bad_image", kWhat));
  PB_ASSIGN_OR_RETURN(group.label_set, JsonString(context.payload, "label_set", kWhat));
  const auto images = static_cast<std::int64_t>(paths.size());
  if (group.first < 0 || count < 1 || group.first > images || count > images - group.first ||
      level < 0) {
    return absl::InvalidArgumentError("stream.open: payload: not images of the list");
  }
  group.paths.assign(paths.begin() + group.first, paths.begin() + group.first + count);
  if (list.contains("table")) {
    PB_ASSIGN_OR_RETURN(group.table, ListedRowsFromJson(list["table"]));
    if (group.table->contents.size() != paths.size()) {
      return absl::InternalError("stream.open: not as many contents as images");
    }
  }
  if (context.payload.contains("config")) {
    PB_ASSIGN_OR_RETURN(group.sampled, plan::RunConfigFromJson(context.payload["config"]));
  }
  group.level = static_cast<std::size_t>(level);
  group.skip_bad = bad == plan::NameOf(plan::OnBadImage::kSkip);
  return group;
}

/// True for what is wrong with an image and stays so.
bool IsFault(const Status& status) {
  switch (status.code()) {
    case absl::StatusCode::kInvalidArgument:
    case absl::StatusCode::kNotFound:
    case absl::StatusCode::kPermissionDenied:
    case absl::StatusCode::kFailedPrecondition:
    case absl::StatusCode::kOutOfRange:
    case absl::StatusCode::kUnimplemented:
    case absl::StatusCode::kDataLoss:
      return true;
    default:
      return false;
  }
}

struct OpenedImage {
  ImageLayout layout;
  Digest digest;
  std::string stamp;
  std::string path;  ///< of another image than what is listed
};

/// The stamp is taken before the image is opened and hashed.
StatusOr<OpenedImage> OpenImageForPlan(TaskContext& context, const std::string& listed) {
  OpenedImage opened;
  PB_ASSIGN_OR_RETURN(const std::string path, context.MayRead(listed));
  StatusOr<std::string> stamp = StampOf(path);
  PB_ASSIGN_OR_RETURN(const std::unique_ptr<ImageSource> image, OpenImage(path));
  PB_ASSIGN_OR_RETURN(opened.stamp, std::move(stamp));
  opened.layout = image->layout();
  PB_ASSIGN_OR_RETURN(opened.digest, ImageDigest(context, path));
  return opened;
}

/// An image of a table. A slide is looked at for the content that the row says it has; where the
/// row does not say, the store of what it has takes its place.
StatusOr<OpenedImage> OpenRowForPlan(TaskContext& context, const ListedRows& table,
                                     const std::string& listed, std::size_t number) {
  const std::string& content = table.contents[number];
  StatusOr<OpenedImage> opened = OpenImageForPlan(context, listed);
  if (absl::IsNotFound(opened.status()) && table.has_stores) {
    return Annotate(opened.status(), content.empty()
                                         ? "the table has no content_hash that tells its store"
                                         : "no store has the row's content_hash, and its slide");
  }
  if (!opened.ok()) return opened;
  if (opened->layout.kind == kStoreKind) {
    const std::string made_from = SourceDigestOf(listed).substr(0, kContentDigits);
    if (content.empty() || made_from == content) return opened;
    return absl::InvalidArgumentError(
        "the store was not made from what the row's content_hash says");
  }
  const std::string found = opened->digest.Hex().substr(0, kContentDigits);
  if (!content.empty() && found != content) {
    return absl::InvalidArgumentError(
        StrCat("its content (SHA-256 ", opened->digest.Hex().substr(0, 12),
               "...) is not what the row's content_hash says: it was changed or replaced since; "
               "correct the table"));
  }
  const auto store = table.stores.find(found);
  if (store == table.stores.end()) return opened;
  context.names.AddImage(store->second, StrCat("image ", number));
  opened = OpenImageForPlan(context, store->second);
  if (opened.ok()) opened->path = store->second;
  return opened;
}

StatusOr<OpenedImage> OpenForPlan(TaskContext& context, const Group& group, const std::string& path,
                                  std::size_t number) {
  if (!group.table) return OpenImageForPlan(context, path);
  return OpenRowForPlan(context, *group.table, path, number);
}

Status CannotUse(const std::string& path, std::string_view why) {
  return absl::InvalidArgumentError(StrCat("plan stream: ", path, ": ", why));
}

/// The fit that ingest left in the image's store. Fitting a slide here would read all of it, at
/// every start: that is ingest's work.
Status AddStain(const std::string& path, plan::PlannedImage& planned) {
  if (planned.kind != "zarr") {
    return CannotUse(path,
                     "stain_normalize needs what ingest learns from every pixel: `patchbay ingest` "
                     "the slide and name its store");
  }
  const Json recorded = RecordedAttribute(path, "stain");
  if (recorded.is_null()) {
    return CannotUse(path,
                     "stain_normalize: the store has no stain fit (made by an earlier version or "
                     "not of RGB): `patchbay ingest` the slide again, into another folder");
  }
  PB_ASSIGN_OR_RETURN(const plan::StainFit fit, plan::StainFitFromJson(recorded));
  planned.macenko = fit.macenko;
  planned.reinhard = fit.reinhard;
  return absl::OkStatus();
}

/// Millimetres from voxel to voxel of the level.
StatusOr<plan::PerAxis> SpacingOf(const ImageLayout& layout, std::size_t level,
                                  const std::string& path) {
  const Spacing& known = layout.spacing;
  if (!known.z || !known.y || !known.x) {
    return CannotUse(path,
                     "affine and elastic of volumes need a spacing in millimetres along z, y "
                     "and x, which the image does not state");
  }
  const Extent &whole = layout.levels[0].size, &size = layout.levels[level].size;
  const auto along = [](const AxisSpacing& axis, std::int64_t before, std::int64_t now) {
    const double step = std::round(static_cast<double>(before) / static_cast<double>(now));
    return axis.Micrometres() / 1000 * std::max(1.0, step);
  };
  return plan::PerAxis{along(*known.z, whole.z, size.z), along(*known.y, whole.y, size.y),
                       along(*known.x, whole.x, size.x)};
}

/// Of the windowed values over the body, as ingest counted it.
StatusOr<plan::MeanAndDeviation> BodyStatistics(const plan::VolumeNeeds& needs,
                                                const std::string& path) {
  const Json recorded = RecordedAttribute(path, "body_histogram");
  if (recorded.is_null()) {
    return CannotUse(path,
                     "zscore: no body histogram (a store made by an earlier version, not of int16, "
                     "or no store): `patchbay ingest` the volume again, into another folder");
  }
  PB_ASSIGN_OR_RETURN(const auto histogram, plan::BodyHistogram::FromJson(recorded));
  const auto statistics = histogram.Statistics(needs.window);
  if (statistics) return *statistics;
  return CannotUse(path, "zscore: no body was found in the volume: leave it out with `where`");
}

Status AddFacts(const Group& group, const ImageLayout& layout, const std::string& path,
                plan::PlannedImage& planned) {
  plan::VolumeFacts facts;
  if (group.volume.facts.spacing) {
    PB_ASSIGN_OR_RETURN(facts.spacing, SpacingOf(layout, group.level, path));
  }
  if (group.volume.facts.body) {
    PB_ASSIGN_OR_RETURN(const auto statistics, BodyStatistics(group.volume, path));
    facts.mean = statistics.mean;
    facts.std = statistics.std;
  }
  planned.volume = facts;
  return absl::OkStatus();
}

Status AddViews(const Group& group, const ImageLayout& layout, const std::string& path,
                plan::PlannedImage& planned) {
  std::vector<Extent> sizes;
  for (const LevelLayout& level : layout.levels) sizes.push_back(level.size);
  auto views = plan::ChooseViews(group.magnification, sizes, layout.spacing);
  if (!views.ok()) return CannotUse(path, MessageOf(views.status()));
  planned.views = *std::move(views);
  planned.size = planned.views.front().size;
  return absl::OkStatus();
}

/// What the config asks for that a good image does not have is an error of the run in any case.
StatusOr<plan::PlannedImage> PlanImage(const OpenedImage& opened, const Group& group,
                                       const std::string& path) {
  const ImageLayout& layout = opened.layout;
  if (group.level >= layout.levels.size()) {
    const std::size_t last = layout.levels.size() - 1;
    return CannotUse(path, StrCat("key 'patch.level': the image has ",
                                  last == 0 ? "level 0 alone" : StrCat("levels 0 to ", last),
                                  ", not ", group.level));
  }
  plan::PlannedImage planned;
  planned.kind = layout.kind;
  planned.size = layout.levels[group.level].size;
  planned.channels = layout.channels;
  planned.dtype = layout.dtype;
  planned.digest = opened.digest;
  if (!group.magnification.mpp.empty()) {
    PB_RETURN_IF_ERROR(AddViews(group, layout, path, planned));
  }
  if (group.needs_stain) {
    PB_RETURN_IF_ERROR(AddStain(opened.path.empty() ? path : opened.path, planned));
  }
  if (group.volume.Any()) {
    PB_RETURN_IF_ERROR(AddFacts(group, layout, opened.path.empty() ? path : opened.path, planned));
  }
  return planned;
}

/// um/px of the pixels of a planned image's `image`; nullopt where the image does not say.
std::optional<double> MppOf(const ImageLayout& layout, const Group& group,
                            const plan::PlannedImage& planned) {
  const std::optional<double> finest = layout.spacing.MeanMpp();
  if (!finest || planned.size.z != 1) return std::nullopt;
  if (planned.views.empty()) return *finest * layout.levels[group.level].downsample;
  const plan::PlannedView& view = planned.views.front();
  return *finest * view.downsample_x * static_cast<double>(view.source.x) /
         static_cast<double>(group.magnification.patch.x);
}

StatusOr<ImageRow> RowOf(TaskContext& context, const Group& group, std::size_t at) {
  ImageRow row;
  const std::string& path = group.paths[at];
  const StatusOr<OpenedImage> opened =
      OpenForPlan(context, group, path, static_cast<std::size_t>(group.first) + at);
  if (opened.ok()) {
    row.stamp = opened->stamp;
    row.path = opened->path;
    PB_ASSIGN_OR_RETURN(row.image, PlanImage(*opened, group, path));
    row.mpp = MppOf(opened->layout, group, row.image);
    if (!group.label_set.empty()) {
      PB_ASSIGN_OR_RETURN(row.image.labels, LabelSetOf(row.path.empty() ? path : row.path,
                                                       group.label_set, row.image));
    }
    if (group.sampled) {
      const std::string& store = row.path.empty() ? path : row.path;
      const auto places = LoadPlaces(*group.sampled, row.image, store);
      if (!places.ok()) return Annotate(places.status(), StrCat("plan stream: ", path));
      row.image.indexes = places->indexes;
      row.image.places = places->places.Counts();
    }
    return row;
  }
  const Status status = Annotate(opened.status(), StrCat("plan stream: ", path));
  if (!group.skip_bad || !IsFault(status)) return status;
  row.fault = std::string(MessageOf(opened.status())).substr(0, kMaxFaultBytes);
  if (row.fault.empty()) row.fault = "it cannot be read";
  return row;
}

}  // namespace

StatusOr<TaskOutput> RunStreamOpen(TaskContext& context) {
  PB_ASSIGN_OR_RETURN(const Group group, GroupOf(context));
  context.names.AddManifest(context.manifest);
  for (std::size_t i = 0; i < group.paths.size(); ++i) {
    const std::int64_t number = group.first + static_cast<std::int64_t>(i);
    context.names.AddImage(group.paths[i], StrCat("image ", number));
  }
  std::vector<ImageRow> rows;
  for (std::size_t i = 0; i < group.paths.size(); ++i) {
    PB_RETURN_IF_ERROR(context.CheckCancelled());
    PB_ASSIGN_OR_RETURN(ImageRow row, RowOf(context, group, i));
    rows.push_back(std::move(row));
    context.AddProgress();
  }
  TaskOutput output;
  output.result = DumpJson(ToJson(rows));
  return output;
}

}  // namespace patchbay::workers
