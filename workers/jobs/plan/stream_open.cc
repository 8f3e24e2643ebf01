// One group of a dataset's images: opened and hashed.
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "runtime/core/hash.h"
#include "runtime/core/outcome.h"
#include "runtime/core/status.h"
#include "runtime/core/strings.h"
#include "runtime/format/json/described.h"
#include "runtime/format/zarr/label_sets.h"
#include "runtime/format/zarr/store_root.h"
#include "runtime/model/jobs/stream_request.h"
#include "runtime/model/plan/class_table.h"
#include "runtime/model/plan/plan.h"
#include "runtime/model/resolution/volume_spacing.h"
#include "runtime/model/results/image_facts.h"
#include "runtime/model/source/mpp_range.h"
#include "runtime/os/folders.h"
#include "workers/access/stamps.h"
#include "workers/jobs/plan/image_channels.h"
#include "workers/jobs/plan/image_row.h"
#include "workers/jobs/plan/image_values.h"
#include "workers/jobs/plan/open_image.h"
#include "workers/jobs/plan/open_request.h"
#include "workers/jobs/plan/plan_tasks.h"
#include "workers/jobs/plan/stain_reference.h"
#include "workers/jobs/plan/table_rows.h"
#include "workers/sources/channel_choice.h"
#include "workers/sources/dicom_slide.h"
#include "workers/sources/image_source.h"
#include "workers/sources/tile_mosaic.h"
#include "workers/sources/zarr_source.h"
#include "workers/stream/image_places.h"

namespace patchbay::workers {
namespace {

constexpr std::size_t kDigitsShown = 12;

Status RefusePinned(std::string_view cause) {
  return FailedPrecondition(cause, "; `patchbay lock --update` takes it as it is now");
}

/// FailedPrecondition unless the image has the digest it is pinned to.
Status CheckPinned(const plan::RowPins& pins, const Digest& digest) {
  if (pins.image == digest) return absl::OkStatus();
  return RefusePinned(StrCat("its digest is ", digest.Hex().substr(0, kDigitsShown),
                             "..., the run's lock has ", pins.image.Hex().substr(0, kDigitsShown),
                             "...: it was changed, replaced or made again"));
}

/// The revision of a label set that the image is pinned to; FailedPrecondition without one.
StatusOr<Digest> PinnedSet(const plan::RowPins& pins, const std::string& set) {
  const auto found = pins.sets.find(set);
  if (found != pins.sets.end()) return found->second;
  return RefusePinned(StrCat("the run's lock has no revision of its label set '", set, "'"));
}

Status RefuseLabelSet(const std::string& path, const std::string& set, std::string_view cause) {
  return ErrorAbout(absl::StatusCode::kInvalidArgument, "plan stream", path,
                    StrCat("key 'labels.set': '", set, "': ", cause));
}

Status RefuseLabelSet(const std::string& path, const std::string& set, const Status& why) {
  return About(Annotate(WithCode(why, absl::StatusCode::kInvalidArgument),
                        StrCat("key 'labels.set': '", set, "'")),
               "plan stream", path);
}

/// Whether the label image has the image's levels, the planned one among them.
bool Fits(const ImageLayout& labels, const Extent& size) {
  if (labels.dtype != DType::kUint8 || labels.channels != 1) return false;
  for (const LevelLayout& level : labels.levels) {
    if (level.size == size) return true;
  }
  return false;
}

/// The pinned revision of `set` below the store at `path`, which it opens. InvalidArgument, naming
/// the path, for a slide, a store without that set, and a set that was made for other pixels.
StatusOr<plan::ImageLabels> LabelSetOf(const Folders& allowed, const std::string& path,
                                       const std::string& set, const plan::PlannedImage& image,
                                       LabelRevision& revision) {
  if (!zarr::IsStore(allowed, path)) {
    return RefuseLabelSet(path, set,
                          "a slide has no label sets: `patchbay ingest` makes a store of it, "
                          "`patchbay labels import` its sets");
  }
  auto found = OpenRevision(allowed, path, set, revision);
  if (!found.ok()) return RefuseLabelSet(path, set, found.status());
  revision.opened = *std::move(found);
  const zarr::OpenedLabelSet& opened = *revision.opened;
  const auto source = OpenZarrImage(allowed, opened.path, opened.root);
  if (!source.ok()) return RefuseLabelSet(path, set, source.status());
  if (!Fits((*source)->layout(), image.size)) {
    return RefuseLabelSet(path, set,
                          "its label image does not have the image's levels; import it again");
  }
  plan::ImageLabels labels;
  labels.digest = opened.digest;
  const Json classes = opened.attributes.value("classes", Json());
  PB_ASSIGN_OR_RETURN(const plan::ClassTable table,
                      plan::ClassTableFromJson(classes, StrCat("label set ", set)));
  for (const plan::LabelClass& one : table.classes) {
    if (one.value != plan::kIgnoreClass) labels.classes.push_back({one.name, one.value});
  }
  return labels;
}

/// Relative difference up to which two um/px are the same.
inline constexpr double kSameMpp = 1e-4;

bool IsVolume(const ImageLayout& layout) { return layout.levels.front().size.z != 1; }

Status WrongCell(std::string_view cause) {
  return InvalidArgument("the table's column 'mpp': ", cause);
}

Status CorrectMpp(double mpp, ImageLayout& layout, results::ImageFacts& facts) {
  const std::optional<double> stated = layout.spacing.MeanMpp();
  if (stated && std::abs(mpp - *stated) <= kSameMpp * *stated) return absl::OkStatus();
  if (IsVolume(layout)) {
    return WrongCell(StrCat(mpp, " um/px for a volume, whose spacing is its own; leave it empty"));
  }
  if (mpp < kSmallestMpp || mpp > kLargestMpp) {
    return WrongCell(StrCat(mpp, ": not in ", kSmallestMpp, "..", kLargestMpp,
                            " um per pixel (20x is about 0.5, 40x about 0.25)"));
  }
  facts.mpp_corrected = true;
  facts.stated_mpp = stated;
  const double factor = stated ? mpp / *stated : 1;
  layout.spacing = stated ? SpacingOfMpp(layout.spacing.y->Micrometres() * factor,
                                         layout.spacing.x->Micrometres() * factor)
                          : SpacingOfMpp(mpp, mpp);
  return absl::OkStatus();
}

/// The facts of an image; what its row in the table says (null: none) goes before. An `mpp` that
/// differs from the file's value replaces it, also in the layout, along both axes in proportion.
/// InvalidArgument, naming the column, for a volume and for a value out of range.
StatusOr<results::ImageFacts> SettleFacts(const plan::PlannedRow* listed, OpenedImage& opened) {
  ImageLayout& layout = opened.layout;
  results::ImageFacts facts;
  std::vector<double> downsamples;
  for (const LevelLayout& level : layout.levels) {
    facts.levels.push_back(level.size);
    downsamples.push_back(level.downsample);
  }
  facts.SetDownsamples(std::move(downsamples));
  if (listed != nullptr && listed->mpp) {
    PB_RETURN_IF_ERROR(CorrectMpp(*listed->mpp, layout, facts));
  }
  if (listed != nullptr && !listed->modality.empty()) {
    PB_ASSIGN_OR_RETURN(facts.modality, ParseModality(listed->modality));
  } else {
    facts.modality = RecordedModality(opened.own);
  }
  if (!IsVolume(layout)) {
    facts.mpp = layout.spacing.MeanMpp();
    return facts;
  }
  const Extent& finest = layout.levels.front().size;
  const auto mm = plan::SpacingOfLevel(layout.spacing, {finest, {1, 1, 1}});
  if (mm.ok()) facts.spacing_mm = {mm->z, mm->y, mm->x};
  const auto affine =
      FromJson<results::Matrix4>(opened.own.value("affine_ras", Json()), "affine_ras");
  if (affine.ok()) facts.affine = *affine;
  return facts;
}

constexpr std::string_view kStreamOpen = "stream.open";
constexpr std::size_t kMaxFaultBytes = 512;

struct Group : OpenRequest {
  std::optional<plan::RunConfig> sampled;  ///< `config`
  ImageList list;                          ///< list of all images
  std::vector<std::string> paths;          ///< paths of the group
  std::vector<plan::PlannedRow> rows;      ///< rows of the group; none without a table

  const plan::PlannedRow* RowAt(std::size_t at) const { return rows.empty() ? nullptr : &rows[at]; }
};

StatusOr<Group> GroupOf(TaskContext& context) {
  if (context.inputs.size() != 1) return Internal("stream.open: not the list of images alone");
  PB_ASSIGN_OR_RETURN(const Json list, ParseJson(context.inputs[0], "list of images"));
  context.inputs.clear();
  Group group;
  PB_RETURN_IF_ERROR(
      ReadJson(context.payload, JsonPlace(kStreamOpen), static_cast<OpenRequest&>(group)));
  if (!group.config.is_null()) {
    PB_ASSIGN_OR_RETURN(group.sampled, plan::RunConfigFromJson(context.ops, group.config));
  }
  PB_ASSIGN_OR_RETURN(group.list, FromJson<ImageList>(list, kStreamOpen));
  const std::vector<std::string> paths = group.list.Paths();
  if (group.count < 1 || group.first > paths.size() || group.count > paths.size() - group.first) {
    return InvalidArgument("stream.open: payload: not images of the list");
  }
  const auto first = paths.begin() + static_cast<std::ptrdiff_t>(group.first);
  group.paths.assign(first, first + static_cast<std::ptrdiff_t>(group.count));
  PB_ASSIGN_OR_RETURN(group.rows, RowsOf(context.manifest, paths.size(), group.first, group.count));
  return group;
}

/// True for permanent faults of an image.
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

Status CannotUse(const std::string& path, std::string_view why) {
  return ErrorAbout(absl::StatusCode::kInvalidArgument, kPlanStream, path, why);
}

Status CannotUse(const std::string& path, const Status& why) {
  return About(WithCode(why, absl::StatusCode::kInvalidArgument), kPlanStream, path);
}

Status AddStain(TaskContext& context, const std::string& path, const Group& group,
                const plan::RowPins* pins, ImageRow& row) {
  WantedStain wanted{group.icc ? StainColours::kSrgb : StainColours::kDevice, {}, {}};
  if (!group.stain_options.is_null()) {
    wanted.options = plan::StainReferences::FromJson(group.stain_options);
  }
  if (const std::string set = wanted.options.TissueSet(); pins != nullptr && !set.empty()) {
    const StatusOr<Digest> pinned = PinnedSet(*pins, set);
    if (pinned.ok()) {
      wanted.tissue = {LabelRevision::By::kDigest, *pinned};
    } else if (wanted.options.AsksForTissue()) {
      return CannotUse(path, pinned.status());
    } else {
      wanted.options.tissue = plan::kNoTissueOfFits;
    }
  }
  const StatusOr<RecordedStain> stain = StainFitOfStore(context, path, wanted);
  if (!stain.ok()) {
    return CannotUse(path, Annotate(stain.status(), StrCat("key '", group.stain, "'")));
  }
  row.image.macenko = stain->fit.macenko;
  row.image.reinhard = stain->fit.reinhard;
  row.misfit = stain->Misfit();
  row.of_tissue = stain->of_tissue;
  return absl::OkStatus();
}

/// An image without a usable profile is flagged, not refused: the config decides about it.
Status AddIcc(const Folders& allowed, const std::string& path, plan::PlannedImage& planned) {
  PB_ASSIGN_OR_RETURN(const std::unique_ptr<ImageSource> image,
                      OpenChosenSlide(allowed, path, planned.choice));
  const auto lookup = image->ToSrgb();
  planned.icc = plan::ImageIcc{};
  if (absl::IsInvalidArgument(lookup.status())) {
    planned.icc->fallback = plan::IccFallback::kUnusable;
    return absl::OkStatus();
  }
  if (!lookup.ok()) return About(lookup.status(), kPlanStream, path);
  if (*lookup == nullptr) {
    planned.icc->fallback = plan::IccFallback::kNoProfile;
  } else {
    planned.icc->lookup = (*lookup)->digest();
  }
  return absl::OkStatus();
}

/// Sides of levels are rounded, and so are steps that are ratios of sides.
plan::VolumeLevel VolumeLevelOf(const LevelLayout& level) {
  const auto whole = [](double step) { return std::max(1.0, std::round(step)); };
  return {level.size, {whole(level.steps[0]), whole(level.steps[1]), whole(level.steps[2])}};
}

/// Refuses volumes known not to be in Hounsfield units, which have no body.
Status CheckBody(const plan::VolumeNeeds& needs, const results::ImageFacts& facts,
                 const std::string& path) {
  if (!needs.values || needs.values->over != plan::kOverBody) return absl::OkStatus();
  std::vector<results::ChannelFacts> known = facts.channels;
  std::erase_if(known, [](const auto& channel) { return !channel.modality; });
  if (known.empty() && !facts.modality) return absl::OkStatus();
  const Status is_hu = CheckAllHu(facts.modality, known);
  return is_hu.ok() ? is_hu : CannotUse(path, Annotate(is_hu, needs.values->op));
}

Status AddFacts(const Folders& allowed, const Group& group, const OpenedImage& opened,
                const std::string& path, plan::PlannedImage& planned) {
  const ImageLayout& layout = opened.layout;
  plan::VolumeFacts facts = planned.volume.value_or(plan::VolumeFacts{});
  if (group.volume.facts.spacing && !group.spacing) {
    const auto mm = plan::SpacingOfLevel(layout.spacing, VolumeLevelOf(layout.levels[group.level]));
    if (!mm.ok()) return CannotUse(path, Annotate(mm.status(), "affine and elastic"));
    facts.spacing = *mm;
  }
  if (group.volume.values) {
    PB_ASSIGN_OR_RETURN(const auto chosen, ChooseChannels(group.channels, layout));
    const Status numbers = AddNumbers(allowed, opened, path, chosen, group.volume, facts);
    if (!numbers.ok()) return CannotUse(path, numbers);
  }
  planned.volume = std::move(facts);
  return absl::OkStatus();
}

Status AddViews(const Group& group, const ImageLayout& layout, const std::string& path,
                plan::PlannedImage& planned) {
  std::vector<Extent> sizes;
  for (const LevelLayout& level : layout.levels) sizes.push_back(level.size);
  auto views = plan::ChooseViews(*group.magnification, sizes, layout.spacing);
  if (!views.ok()) return CannotUse(path, views.status());
  planned.views = *std::move(views);
  planned.size = planned.views.front().size;
  return absl::OkStatus();
}

/// The level and the voxels of it that become a patch of the spacing.
Status AddSpacing(const Group& group, const ImageLayout& layout, const std::string& path,
                  plan::PlannedImage& planned) {
  std::vector<plan::VolumeLevel> levels;
  for (const LevelLayout& level : layout.levels) levels.push_back(VolumeLevelOf(level));
  const auto chosen = plan::ChooseSpacing(*group.spacing, levels, layout.spacing);
  if (!chosen.ok()) return CannotUse(path, chosen.status());
  planned.views = {chosen->view};
  planned.size = chosen->view.size;
  planned.volume.emplace();
  planned.volume->spacing = chosen->spacing;
  planned.volume->step = chosen->step;
  planned.volume->nearest_axis = chosen->nearest_axis;
  return absl::OkStatus();
}

/// An undamaged image that lacks something the config asks for fails the run with any on_bad_image.
StatusOr<plan::PlannedImage> PlanImage(const Folders& allowed, const OpenedImage& opened,
                                       const Group& group, const std::string& path) {
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
  planned.channels =
      group.channels.empty() ? layout.channels : static_cast<int>(group.channels.size());
  planned.dtype = layout.dtype;
  planned.digest = opened.digest;
  planned.choice = opened.choice;
  if (group.magnification) {
    PB_RETURN_IF_ERROR(AddViews(group, layout, path, planned));
  }
  if (group.spacing) PB_RETURN_IF_ERROR(AddSpacing(group, layout, path, planned));
  if (group.icc) {
    PB_RETURN_IF_ERROR(AddIcc(allowed, opened.path.empty() ? path : opened.path, planned));
  }
  if (group.volume.Any()) {
    PB_RETURN_IF_ERROR(
        AddFacts(allowed, group, opened, opened.path.empty() ? path : opened.path, planned));
  }
  return planned;
}

/// um/px of the array `image` of a planned image; nullopt if the image does not state it.
std::optional<double> MppOf(const ImageLayout& layout, const Group& group,
                            const plan::PlannedImage& planned) {
  const std::optional<double> finest = layout.spacing.MeanMpp();
  if (!finest || planned.size.z != 1 || group.spacing) return std::nullopt;
  if (planned.views.empty()) return *finest * layout.levels[group.level].downsample;
  const plan::PlannedView& view = planned.views.front();
  return *finest * view.downsample_x * static_cast<double>(view.source.x) /
         static_cast<double>(group.magnification->patch.x);
}

/// Adds the facts of volumes that join compares. Only a store of `ingest` states its orientation.
void AddAxes(const OpenedImage& opened, const Group& group, ImageRow& row) {
  const ImageLayout& layout = opened.layout;
  const auto mm = plan::SpacingOfLevel(layout.spacing, VolumeLevelOf(layout.levels[group.level]));
  if (!mm.ok()) return;
  row.spacing = *mm;
  const Json orientation = opened.own.value("orientation", Json());
  if (orientation.is_string()) row.orientation = orientation.get<std::string>();
}

/// Labels and places, of the revisions that are current or that the run is locked to.
Status AddSets(const Folders& allowed, const Group& group, const plan::RowPins* pins,
               const std::string& path, ImageRow& row) {
  const std::string& store = row.path.empty() ? path : row.path;
  PlaceRevisions revisions;
  std::vector<LabelRevision> wanted(group.label_sets.size());
  if (pins != nullptr) {
    const Status pinned = CheckPinned(*pins, row.image.digest);
    if (!pinned.ok()) return CannotUse(path, pinned);
    const auto pin = [&](const std::string& set, LabelRevision& revision) {
      const StatusOr<Digest> digest = PinnedSet(*pins, set);
      if (digest.ok()) revision = {LabelRevision::By::kDigest, *digest};
      return digest.ok() ? absl::OkStatus() : CannotUse(path, digest.status());
    };
    for (std::size_t i = 0; i < wanted.size(); ++i) {
      PB_RETURN_IF_ERROR(pin(group.label_sets[i], wanted[i]));
    }
    if (group.sampled && group.sampled->tissue_fraction) {
      PB_RETURN_IF_ERROR(pin(group.sampled->tissue_set, revisions.tissue));
    }
  }
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    PB_ASSIGN_OR_RETURN(plan::ImageLabels labels,
                        LabelSetOf(allowed, store, group.label_sets[i], row.image, wanted[i]));
    if (i == 0) {
      revisions.classes = wanted[i];
      row.image.labels = std::move(labels);
    } else {
      row.image.further_labels.push_back(std::move(labels));
    }
  }
  if (!group.sampled) return absl::OkStatus();
  auto places = CountPlaces(allowed, *group.sampled, row.image, store, revisions);
  if (!places.ok()) return About(places.status(), kPlanStream, path);
  row.image.indexes = std::move(places->indexes);
  row.image.places = std::move(places->counts);
  return absl::OkStatus();
}

StatusOr<ImageRow> RowOf(TaskContext& context, const Group& group, std::size_t at) {
  ImageRow row;
  const std::string& path = group.paths[at];
  const plan::PlannedRow* listed = group.RowAt(at);
  const plan::RowPins* pins = listed != nullptr && listed->pins ? &*listed->pins : nullptr;
  StatusOr<OpenedImage> opened = OpenForPlan(context, group.list, listed, path, group.first + at);
  if (opened.ok()) {
    row.stamp = opened->stamp;
    row.path = opened->path;
    const std::string& store = row.path.empty() ? path : row.path;
    auto facts = SettleFacts(listed, *opened);
    if (!facts.ok()) return CannotUse(path, facts.status());
    row.facts = *std::move(facts);
    const auto chosen = ChooseChannels(group.channels, opened->layout);
    if (!chosen.ok()) return CannotUse(path, chosen.status());
    // The table's modality is that of all channels.
    const bool is_by_table = listed != nullptr && !listed->modality.empty();
    row.facts.channels =
        ChannelFactsOf(*opened, *chosen, is_by_table ? row.facts.modality : std::nullopt);
    PB_RETURN_IF_ERROR(CheckBody(group.volume, row.facts, path));
    PB_ASSIGN_OR_RETURN(row.image, PlanImage(context.allowed, *opened, group, path));
    if (!group.stain.empty()) PB_RETURN_IF_ERROR(AddStain(context, store, group, pins, row));
    row.mpp = MppOf(opened->layout, group, row.image);
    AddAxes(*opened, group, row);
    if (opened->own.value("source_kind", Json()) == kTilesKind) {
      row.tile = opened->layout.levels.front().chunk;
    }
    row.mpp_assumed = row.mpp && !row.facts.mpp_corrected && opened->own.contains("mpp_assumed");
    PB_RETURN_IF_ERROR(AddSets(context.allowed, group, pins, path, row));
    if (listed != nullptr) {
      auto placed = PlacesAtLevel(listed->positions, opened->layout, row.image);
      if (!placed.ok()) return CannotUse(path, placed.status());
      row.image.listed = *std::move(placed);
      row.image.listed_labels = listed->position_labels;
    }
    return row;
  }
  const Status status = About(opened.status(), kPlanStream, path);
  // A run that is locked has all of its images or does not start.
  if (group.on_bad_image == plan::OnBadImage::kFail || pins != nullptr || !IsFault(status)) {
    return status;
  }
  // The row travels, and its reader knows the image.
  const auto image = [](const Subject&) { return std::string("the image"); };
  row.fault =
      TextOf(OutcomeOf(context.WithSubjects(opened.status())), image).substr(0, kMaxFaultBytes);
  if (row.fault.empty()) row.fault = "it cannot be read";
  return row;
}

}  // namespace

StatusOr<TaskOutput> RunStreamOpen(TaskContext& context) {
  PB_ASSIGN_OR_RETURN(const Group group, GroupOf(context));
  for (std::size_t i = 0; i < group.paths.size(); ++i) {
    context.subjects.Add(group.paths[i], {SubjectKind::kImage, group.first + i, ""});
  }
  std::vector<ImageRow> rows;
  for (std::size_t i = 0; i < group.paths.size(); ++i) {
    PB_RETURN_IF_ERROR(context.CheckCancelled());
    PB_ASSIGN_OR_RETURN(ImageRow row, RowOf(context, group, i));
    rows.push_back(std::move(row));
    context.AddProgress();
  }
  TaskOutput output;
  output.result = DumpJson(JsonOf(rows));
  return output;
}

}  // namespace patchbay::workers
