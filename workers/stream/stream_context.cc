#include "workers/stream/stream_context.h"

#include <algorithm>
#include <utility>

#include "ops/icc_to_srgb/icc_lookup.h"
#include "runtime/format/json/described.h"
#include "runtime/format/zarr/label_sets.h"
#include "workers/access/stamps.h"
#include "workers/access/subject_table.h"
#include "workers/sources/digest_cache.h"
#include "workers/stream/chain_options.h"
#include "workers/stream/image_places.h"

namespace patchbay::workers {
namespace {

Status NotAsPlanned(std::uint32_t image, std::string_view cause, std::string_view advice = "") {
  return ErrorAbout(absl::StatusCode::kDataLoss, "open stream", {SubjectKind::kImage, image, ""},
                    cause, advice);
}

/// Values of ImageLayout::kind; the prefix of it for slides.
constexpr std::string_view kStoreKind = "zarr", kOpenSlideKind = "openslide:";

}  // namespace

StatusOr<std::shared_ptr<StreamContext>> StreamContext::Build(
    const plan::OpTable& ops, const protocol::StreamDescribed& described, ImageCache& images) {
  PB_ASSIGN_OR_RETURN(plan::Plan plan, plan::Plan::Parse(ops, described.plan));
  if (plan.digest() != described.plan_digest) {
    return InvalidArgument("open stream: ", described.stream,
                           ": its plan does not have the digest it is named by");
  }
  PB_ASSIGN_OR_RETURN(const StreamGeometry geometry, plan.Geometry(described.geometry.world_size));
  if (geometry != described.geometry || Capacity(geometry) != described.capacity) {
    return InvalidArgument("open stream: ", described.stream, ": its plan is cut otherwise here");
  }
  PB_ASSIGN_OR_RETURN(const Json manifest, ParseJson(described.manifest, "stream manifest"));
  PB_ASSIGN_OR_RETURN(PlannedImages where, PlannedImagesOf(manifest, plan.images().size()));
  PB_ASSIGN_OR_RETURN(ops::Chain chain, ops::Chain::Compile(ChainOptionsOf(plan)));
  PB_ASSIGN_OR_RETURN(FunctionStages functions, FunctionStages::Of(plan, chain));
  if (functions.functions().size() != where.functions.size()) {
    return InvalidArgument("open stream: ", described.stream,
                           ": its manifest does not have the file of every own function");
  }
  std::shared_ptr<StreamContext> context(
      new StreamContext(std::move(plan), std::move(chain), images, {described.read_prefixes, {}}));
  context->stream_ = described.stream;
  context->functions_ = std::move(functions);
  context->geometry_ = geometry;
  context->checked_paths_.resize(where.paths.size());
  context->where_ = std::move(where);
  context->trainers_ = described.trainers;
  return context;
}

StatusOr<const protocol::TrainerEndpoint*> StreamContext::TrainerOf(std::uint32_t rank) const {
  for (const protocol::TrainerEndpoint& trainer : trainers_) {
    if (trainer.rank == rank) return &trainer;
  }
  return NotFound("find trainer: stream ", stream_, " rank ", rank, ": not attached");
}

StatusOr<FunctionFile> StreamContext::FileOfFunction(const FunctionPolicy& policy,
                                                     std::size_t index) const {
  StatusOr<FunctionFile> file = ReadFunctionFile(policy, rights_, where_.functions[index]);
  if (file.ok()) return file;
  return InvalidArgument("own function ", functions_.functions()[index].function, ": ",
                         TextWithoutSubject(file.status()));
}

StatusOr<std::shared_ptr<const ImageSource>> StreamContext::Image(std::uint32_t index,
                                                                  const AfterPiece& after_file) {
  PB_ASSIGN_OR_RETURN(const std::string path, CheckedPath(index));
  PB_ASSIGN_OR_RETURN(
      std::shared_ptr<const ImageSource> image,
      images_.Get(
          allowed_, path, ImageStamp(index, path),
          [&](ImageSource* opened) { return CheckUnchanged(index, path, opened, after_file); },
          plan_.images()[index].choice));
  PB_RETURN_IF_ERROR(CheckAsPlanned(index, image->layout()));
  return image;
}

StatusOr<std::shared_ptr<const ImageSource>> StreamContext::Labels(std::uint32_t index,
                                                                   std::size_t set) {
  PB_ASSIGN_OR_RETURN(const std::string store, CheckedPath(index));
  const plan::PlannedImage& planned = plan_.images()[index];
  const Digest& digest = planned.LabelsOf(set).digest;
  const std::string& name = set_names_[set];
  const std::string path = LabelsPath(index, set, store);
  StatusOr<std::shared_ptr<const ImageSource>> labels =
      images_.Get(allowed_, path, StampBelow(path, digest.Hex()), [&](ImageSource*) {
        return zarr::OpenLabelRevision(allowed_, store, name, digest).status();
      });
  if (!labels.ok()) return LabelsChanged(index, store, labels.status());
  const ImageLayout& layout = (*labels)->layout();
  const auto level = static_cast<std::size_t>(plan_.ViewOf(index, 0).level);
  const bool fits = layout.dtype == DType::kUint8 && layout.channels == 1 &&
                    level < layout.levels.size() && layout.levels[level].size == planned.size;
  if (fits) return *std::move(labels);
  return ErrorAbout(absl::StatusCode::kDataLoss, "open labels", {SubjectKind::kImage, index, ""},
                    "its size differs from that of the image");
}

void StreamContext::Forget(std::uint32_t index, const ImageSource* image) {
  const auto path = CheckedPath(index);
  if (path.ok()) images_.Forget(*path, ImageStamp(index, *path), image);
}

void StreamContext::ForgetLabels(std::uint32_t index, std::size_t set, const ImageSource* labels) {
  const auto store = CheckedPath(index);
  if (!store.ok() || labels == nullptr) return;
  const std::string path = LabelsPath(index, set, *store);
  images_.Forget(path, StampBelow(path, plan_.images()[index].LabelsOf(set).digest.Hex()), labels);
}

/// The digest tells two stores apart that were at this path, the stamp two slides. Nothing vouches
/// for images of many files without a list of their digests but that they were not touched since
/// they were opened: each stream opens them itself.
std::string StreamContext::ImageStamp(std::uint32_t index, const std::string& path) const {
  const plan::PlannedImage& planned = plan_.images()[index];
  const SlideChoice& part = planned.choice;
  const std::string stamp =
      where_.stamps[index] + (part.IsMade() ? StrCat("|", DumpJson(JsonOf(part))) : "");
  if (stamp.empty()) return StampBelow(path, planned.digest.Hex());
  const bool is_shared = planned.kind != kStoreKind && !planned.kind.starts_with(kOpenSlideKind);
  return StampBelow(path, is_shared ? stamp : StrCat(stamp, "|", stream_));
}

Status StreamContext::CheckContent(std::uint32_t index, const Status& aborted,
                                   const AfterPiece& after_block) {
  PB_ASSIGN_OR_RETURN(const std::string path, CheckedPath(index));
  PB_RETURN_IF_ERROR(CheckUnchanged(index, path, nullptr, after_block));
  const std::string& kind = plan_.images()[index].kind;
  const auto files = FilesOfSlide(allowed_, path);
  const bool is_one_file = kind != kStoreKind && files.ok() && files->size() == 1;
  if (!is_one_file) return Changed(index, OutcomeOf(aborted).cause);
  const auto digest = DigestCache(allowed_, "").DigestOf(path, after_block);
  if (!digest.ok() && !absl::IsFailedPrecondition(digest.status())) return digest.status();
  if (digest.ok() && *digest == plan_.images()[index].digest) return absl::OkStatus();
  return Changed(index, "its content (SHA-256) is another");
}

Status StreamContext::Changed(std::uint32_t index, std::string_view how) const {
  return NotAsPlanned(index, StrCat("it changed since it was planned, or is gone (", how, ")"),
                      "start the stream anew");
}

/// A revision that was planned is never changed, so one that is missing or differs ends the stream.
Status StreamContext::LabelsChanged(std::uint32_t index, const std::string& path,
                                    const Status& why) const {
  const bool changed =
      absl::IsNotFound(why) || absl::IsFailedPrecondition(why) || absl::IsDataLoss(why);
  if (!changed) return why;
  PB_RETURN_IF_ERROR(CheckUnchanged(index, path, nullptr, {}));
  const plan::RunConfig& config = plan_.config();
  std::vector<std::string> sets;
  for (const std::string& set : config.labels.Sets()) sets.push_back(StrCat("'", set, "'"));
  if (config.tissue_fraction) sets.push_back(StrCat("'", config.tissue_set, "'"));
  return NotAsPlanned(
      index,
      StrCat("its label set ", StrJoin(sets, " or "), " changed since it was planned, or is gone (",
             TextWithoutSubject(why), ")"),
      "start the stream anew");
}

std::string StreamContext::LabelsPath(std::uint32_t index, std::size_t set,
                                      const std::string& store) const {
  return StrCat(store, "/", zarr::kLabelsFolder, "/",
                zarr::RevisionName(set_names_[set], plan_.images()[index].LabelsOf(set).digest));
}

StatusOr<std::shared_ptr<const ops::IccLookup>> StreamContext::ToSrgb(std::uint32_t index) {
  const std::optional<plan::ImageIcc>& icc = plan_.images()[index].icc;
  if (!icc || icc->fallback != plan::IccFallback::kNone) return nullptr;
  {
    const std::lock_guard lock(lookups_mu_);
    if (const auto* const found = lookups_.Find(icc->lookup); found != nullptr) return *found;
  }
  PB_ASSIGN_OR_RETURN(const auto image, Image(index));
  const auto lookup = image->ToSrgb();
  if (!lookup.ok() || *lookup == nullptr || (*lookup)->digest() != icc->lookup) {
    return NotAsPlanned(index,
                        "its ICC profile gives other colours than where the stream was planned");
  }
  const std::lock_guard lock(lookups_mu_);
  lookups_.Insert(icc->lookup, *lookup);
  return *lookup;
}

StatusOr<std::string> StreamContext::CheckedPath(std::uint32_t index) {
  if (index >= where_.paths.size()) {
    return Internal("open image: ", index, ": the plan has ", where_.paths.size());
  }
  {
    const std::lock_guard lock(checked_mu_);
    if (!checked_paths_[index].empty()) return checked_paths_[index];
  }
  PB_ASSIGN_OR_RETURN(std::string path, PathAllowed(rights_, Access::kRead, where_.paths[index]));
  const std::lock_guard lock(checked_mu_);
  checked_paths_[index] = path;
  return path;
}

std::string StreamContext::StampBelow(const std::string& path, const std::string& stamp) const {
  const auto folder = allowed_.Around(path, false);
  return folder.ok() ? StrCat(stamp, "|", *folder) : stamp;
}

Status StreamContext::CheckUnchanged(std::uint32_t index, const std::string& path,
                                     ImageSource* opened, const AfterPiece& after_file) const {
  if (where_.stamps[index].empty()) {  // a store that records its digest
    if (RecordedDigest(allowed_, path) == plan_.images()[index].digest) return absl::OkStatus();
  } else {
    const StatusOr<SeenFiles> seen = LookAtFiles(allowed_, path, after_file);
    if (!seen.ok() && !absl::IsNotFound(seen.status())) return seen.status();
    if (seen.ok() && seen->stamp == where_.stamps[index]) {
      if (opened != nullptr && seen->files != nullptr) opened->Expect(seen->files);
      return absl::OkStatus();
    }
  }
  return Changed(index, where_.stamps[index].empty() ? "the digest in its metadata is another"
                                                     : "size or time of writing of its files");
}

StatusOr<plan::PatchSpec> StreamContext::Spec(std::uint32_t epoch, std::uint64_t ordinal) {
  PB_ASSIGN_OR_RETURN(const plan::PatchSource source, plan_.SourceOf(epoch, ordinal));
  if (source.pad || !plan::NeedsPlaces(plan_.config())) return plan_.SpecOf(source, nullptr);
  PB_ASSIGN_OR_RETURN(const SharedPlaces places, Places(source.image));
  return plan_.SpecOf(source, places.get());
}

StatusOr<StreamContext::SharedPlaces> StreamContext::Places(std::uint32_t index) {
  {
    const std::lock_guard lock(places_mu_);
    if (const SharedPlaces* const found = places_.Find(index); found != nullptr) return *found;
  }
  PB_ASSIGN_OR_RETURN(const std::string path, CheckedPath(index));
  const plan::PlannedImage& planned = plan_.images()[index];
  StatusOr<LoadedPlaces> loaded = LoadPlaces(allowed_, plan_.config(), planned, path,
                                             RevisionsOfIndexes(plan_.config(), planned.indexes));
  if (!loaded.ok()) return WithImage(LabelsChanged(index, path, loaded.status()), index);
  if (loaded->indexes != planned.indexes || loaded->places.Counts() != planned.places) {
    return NotAsPlanned(index,
                        "its annotations or its mask of tissue changed since they were planned",
                        "start the stream anew");
  }
  auto places = std::make_shared<const plan::ImagePlaces>(std::move(loaded->places));
  const std::lock_guard lock(places_mu_);
  places_.Insert(index, places, places->MemoryBytes());
  return places;
}

Status StreamContext::WithImage(const Status& status, std::uint32_t index) const {
  if (status.ok() || index >= where_.paths.size()) return status;
  SubjectTable subjects;
  subjects.Add(where_.paths[index], {SubjectKind::kImage, index, ""});
  return subjects.Settle(status);
}

Status StreamContext::CheckAsPlanned(std::uint32_t index, const ImageLayout& layout) const {
  const plan::PlannedImage& planned = plan_.images()[index];
  const bool takes_all = plan_.config().channels.empty();
  bool same = layout.kind == planned.kind && layout.dtype == planned.dtype &&
              (!takes_all || layout.channels == planned.channels);
  for (std::size_t i = 0; same && i < plan_.views(); ++i) {
    const plan::PlannedView view = plan_.ViewOf(index, i);
    const auto level = static_cast<std::size_t>(view.level);
    same = level < layout.levels.size() && layout.levels[level].size == view.size;
  }
  if (same) return absl::OkStatus();
  return NotAsPlanned(index, "it is not the image that was planned");
}

}  // namespace patchbay::workers
