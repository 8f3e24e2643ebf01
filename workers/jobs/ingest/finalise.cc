// The end of a slide and the end of the job: every shard as its check read it back, one rename,
// then nothing of the work left behind.
#include <algorithm>
#include <filesystem>

#include "ops/stain_normalize/stain_fit.h"
#include "runtime/core/strings.h"
#include "runtime/format/zarr/publish.h"
#include "runtime/format/zarr/verify.h"
#include "runtime/model/ops/image_icc_lookup.h"
#include "runtime/os/file.h"
#include "runtime/os/file_names.h"
#include "workers/jobs/ingest/check.h"
#include "workers/jobs/ingest/ingest.h"
#include "workers/jobs/ingest/publish.h"
#include "workers/jobs/ingest/slide.h"
#include "workers/jobs/ingest/tissue_set.h"
#include "workers/jobs/task/folder_tree.h"
#include "workers/jobs/task/result_file.h"
#include "workers/jobs/task/slide_tasks.h"
#include "workers/jobs/task/store_attributes.h"
#include "workers/sources/openslide_source.h"

namespace patchbay::workers {
namespace {

/// What the checks reported, in ShardPlaces order.
StatusOr<std::vector<CheckedShard>> ReportedShards(const TaskContext& context) {
  std::vector<CheckedShard> shards;
  for (const std::string& input : context.inputs) {
    constexpr std::string_view kWhat = "check result";
    PB_ASSIGN_OR_RETURN(const Json json, ParseJson(input, kWhat));
    PB_ASSIGN_OR_RETURN(const Json* reported, JsonMember(json, "shards", kWhat));
    for (const Json& value : *reported) {
      PB_ASSIGN_OR_RETURN(CheckedShard shard, CheckedShardFromJson(value));
      shards.push_back(std::move(shard));
    }
  }
  return shards;
}

/// The published metadata as it was drafted, if a task that had lost its right wrote over it before
/// the store got its name.
Status RestoreMetadata(const Folders& allowed, const std::string& store,
                       const zarr::ImageStoreSpec& spec, const zarr::StoreRoots& roots) {
  const auto row = zarr::InspectStore(allowed, store);
  if (row.ok() && row->value("digest", Json()) == roots.bytes.Hex() &&
      row->value("pixel_digest", Json()) == roots.pixels.Hex()) {
    return absl::OkStatus();
  }
  return zarr::DraftStoreMetadata(allowed, store, spec, roots);
}

/// What the colours of the whole slide come to, and what its ICC profile makes of them: nothing for
/// a slide without colours.
Status AddColours(TaskContext& context, const IngestSlide& slide, const std::string& slide_key,
                  Json& attributes) {
  if (!HasColours(slide.store)) return absl::OkStatus();
  ops::StainCounter whole;
  for (const zarr::ShardPlace& place : ShardPlaces(slide)) {
    if (place.level != 0) break;
    PB_ASSIGN_OR_RETURN(const auto colours, ReadColours(slide, slide_key, place));
    if (colours) PB_RETURN_IF_ERROR(whole.Add(*colours));
    context.AddProgress();
    PB_RETURN_IF_ERROR(context.CheckCancelled());
  }
  const ops::StainHistogram counts = whole.Take();
  const auto progress = [&context] { context.AddProgress(); };
  attributes["stain"] = plan::ToJson(ops::Rounded(ops::FitStains(counts, {}, progress)));
  const auto lookup = slide.source->ToSrgb();
  if (absl::IsInvalidArgument(lookup.status())) {
    attributes[plan::kIccToSrgb] = {{"fallback", plan::NameOf(plan::IccFallback::kUnusable)}};
    return absl::OkStatus();
  }
  if (!lookup.ok() || *lookup == nullptr) return lookup.status();
  ops::StainFitOptions options;
  options.to_srgb = [&icc = **lookup](float(&rgb)[3]) { icc.Apply(&rgb[0], &rgb[1], &rgb[2], 1); };
  attributes[plan::kIccToSrgb] = (*lookup)->ToJson();
  attributes["stain_srgb"] = plan::ToJson(ops::Rounded(ops::FitStains(counts, options, progress)));
  return absl::OkStatus();
}

/// Annotations of such slides may count from the area's corner (labels/origin.h).
Status AddScannedArea(const IngestSlide& slide, Json& attributes) {
  if (!slide.source->layout().kind.starts_with("openslide:")) return absl::OkStatus();
  PB_ASSIGN_OR_RETURN(const std::optional<Box> area,
                      ScannedAreaOf(slide.folders.allowed, slide.path));
  if (area) attributes["source_bounds"] = {area->y, area->x, area->height, area->width};
  return absl::OkStatus();
}

Status WriteAndPublish(TaskContext& context, const IngestSlide& slide, const std::string& name,
                       SlideOutcome& outcome) {
  PB_ASSIGN_OR_RETURN(const Digest source, Digest::FromHex(outcome.source_sha256));
  zarr::ImageStoreSpec spec = StoreSpec(slide, source, outcome.source_bytes);
  PB_ASSIGN_OR_RETURN(const auto reported, ReportedShards(context));
  PB_ASSIGN_OR_RETURN(const StagedShards shards,
                      ConfirmShards(context, slide, outcome.slide_key, reported));
  outcome.absent_pieces = shards.absent_pieces;
  PB_RETURN_IF_ERROR(AddScannedArea(slide, spec.attributes));
  spec.attributes["absent_tiles"] = outcome.absent_pieces;
  PB_RETURN_IF_ERROR(AddColours(context, slide, outcome.slide_key, spec.attributes));
  PB_ASSIGN_OR_RETURN(const zarr::StoreRoots roots, zarr::CombineRoots(spec, shards.records));
  const std::string staged = slide.folders.Store(outcome.slide_key);
  PB_RETURN_IF_ERROR(zarr::DraftStoreMetadata(context.allowed, staged, spec, roots));
  context.AddProgress();
  PB_RETURN_IF_ERROR(context.CheckCancelled());
  const std::string target = StrCat(slide.folders.out, "/", name);
  PB_RETURN_IF_ERROR(
      zarr::PublishStore(context.allowed, staged, target, [&context] { context.AddProgress(); }));
  PB_RETURN_IF_ERROR(RestoreMetadata(context.allowed, target, spec, roots));
  outcome.digest = roots.bytes.Hex();
  outcome.pixel_digest = roots.pixels.Hex();
  outcome.stored_bytes = StoredBytesOf(context, target);
  outcome.store = name;
  return absl::OkStatus();
}

StatusOr<TaskOutput> Finalise(TaskContext& context) {
  PB_ASSIGN_OR_RETURN(const IngestSlide slide, OpenIngestSlide(context));
  PB_ASSIGN_OR_RETURN(SlideOutcome outcome, LoadOutcome(slide.folders, slide.index));
  PB_ASSIGN_OR_RETURN(const Digest source, Digest::FromHex(outcome.source_sha256));
  PB_ASSIGN_OR_RETURN(const std::string name, StoreName(slide.manifest, slide.path, source));
  const auto adopt = [&] {
    return AdoptFinishedStore(context, slide.folders, name, slide.manifest.settings, outcome);
  };
  PB_ASSIGN_OR_RETURN(bool there, adopt());
  if (!there) {
    const auto lock = StagingLock::Take(context, slide.folders.Staging(outcome.slide_key));
    PB_ASSIGN_OR_RETURN(there, adopt());  // by a copy of the slide that was faster
    if (!there) PB_RETURN_IF_ERROR(lock.status());
    if (!there) PB_RETURN_IF_ERROR(WriteAndPublish(context, slide, name, outcome));
  }
  PB_RETURN_IF_ERROR(SaveOutcome(slide.folders, slide.index, outcome));
  RemoveTree(context, slide.folders.Staging(outcome.slide_key)).IgnoreError();
  TaskOutput output;
  AddTissueTask(slide.folders, slide.manifest.settings, slide.index, name, output);
  output.result = DumpJson({{"slide", slide.index},
                            {"store", outcome.store},
                            {"digest", outcome.digest},
                            {"pixel_digest", outcome.pixel_digest},
                            {"source_bytes", outcome.source_bytes},
                            {"stored_bytes", outcome.stored_bytes}});
  return output;
}

/// The warnings that a store of a volume holds; none of another's that says something else there.
std::vector<std::string> WarningsOf(const Folders& allowed, const std::string& store) {
  std::vector<std::string> warnings;
  const Json listed = PatchbayAttributes(allowed, store).value("warnings", Json::array());
  if (!listed.is_array()) return warnings;
  for (const Json& one : listed) {
    if (one.is_string()) warnings.push_back(one.get<std::string>());
  }
  return warnings;
}

StatusOr<TaskOutput> Summarise(TaskContext& context) {
  PB_ASSIGN_OR_RETURN(const IngestFolders folders, FoldersOf(context));
  PB_ASSIGN_OR_RETURN(const IngestManifest manifest, LoadManifest(folders));
  Json stores = Json::array(), missing = Json::array(), without_tissue = Json::array();
  std::vector<std::pair<std::int64_t, SlideOutcome>> finished;
  for (std::int64_t i = 0; i < static_cast<std::int64_t>(manifest.sources.size()); ++i) {
    const auto outcome = LoadOutcome(folders, i);
    context.AddProgress();
    if (!outcome.ok() || outcome->store.empty()) {
      missing.push_back(i);
      if (outcome.ok()) RemoveTree(context, folders.Staging(outcome->slide_key)).IgnoreError();
      continue;
    }
    stores.push_back({{"name", outcome->store},
                      {"source_index", i},
                      {"source_bytes", outcome->source_bytes},
                      {"stored_bytes", outcome->stored_bytes},
                      {"digest", outcome->digest},
                      {"pixel_digest", outcome->pixel_digest},
                      {"already_there", outcome->already_there}});
    const bool is_slide = !std::filesystem::exists(folders.VolumeFile(i));
    if (!is_slide) {
      stores.back()["warnings"] =
          WarningsOf(context.allowed, StrCat(folders.out, "/", outcome->store));
    }
    if (is_slide && LacksTissue(folders, manifest.settings, outcome->store)) {
      without_tissue.push_back(i);
    }
    finished.emplace_back(i, *outcome);
  }
  PB_RETURN_IF_ERROR(UpdateManifestCsv(folders, manifest, finished));
  const Json summary = {
      {"stores", stores}, {"missing", missing}, {"without_tissue", without_tissue}};
  PB_ASSIGN_OR_RETURN(std::string result, InlineOrFile(context, folders.out, DumpJson(summary)));
  const bool is_whole = missing.empty() && without_tissue.empty();
  if (is_whole) {  // of before a retry
    RemoveFile(context.allowed, folders.out + "/failed.csv").IgnoreError();
  }
  return Summarised(folders, std::move(result), is_whole);
}

}  // namespace

StatusOr<TaskOutput> RunIngestFinalise(TaskContext& context) { return Finalise(context); }

StatusOr<TaskOutput> RunIngestSummary(TaskContext& context) { return Summarise(context); }

StatusOr<TaskOutput> RunIngestClean(TaskContext& context) {
  return CleanSlideJob(context, "ingest");
}

}  // namespace patchbay::workers
