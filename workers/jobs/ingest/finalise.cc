// The end of a slide and of the job: confirms every shard by its check, publishes the store with
// one rename, and removes the staging folder.
#include <algorithm>
#include <cmath>

#include "ops/stain_normalize/fit_stains.h"
#include "runtime/core/strings.h"
#include "runtime/format/zarr/store_root.h"
#include "runtime/format/zarr/tied_file.h"
#include "runtime/model/ops/image_icc_lookup.h"
#include "runtime/os/file.h"
#include "runtime/os/file_names.h"
#include "runtime/os/folder_listing.h"
#include "workers/jobs/ingest/check.h"
#include "workers/jobs/ingest/ingest.h"
#include "workers/jobs/ingest/ingest_publish.h"
#include "workers/jobs/ingest/ingest_slide.h"
#include "workers/jobs/ingest/tile_source.h"
#include "workers/jobs/staged/own_table.h"
#include "workers/jobs/task/folder_tree.h"
#include "workers/jobs/task/recorded_stain.h"
#include "workers/jobs/task/task.h"
#include "workers/sources/openslide_source.h"

namespace patchbay::workers {
namespace {

/// The shards that the ingest.check tasks reported, in the order of ShardPlaces.
StatusOr<std::vector<CheckedShard>> ReportedShards(const TaskContext& context) {
  std::vector<CheckedShard> shards;
  for (const std::string& input : context.inputs) {
    PB_ASSIGN_OR_RETURN(const Json json, ParseJson(input, "check result"));
    PB_ASSIGN_OR_RETURN(const CheckedShards some, FromJson<CheckedShards>(json, "check result"));
    shards.insert(shards.end(), some.shards.begin(), some.shards.end());
  }
  return shards;
}

/// The colours of the whole slide; nullopt for a slide without colours.
StatusOr<std::optional<ops::StainHistogram>> ColoursOf(TaskContext& context,
                                                       const IngestSlide& slide) {
  if (!HasColours(slide)) return std::optional<ops::StainHistogram>();
  ops::StainCounter whole;
  for (const zarr::ShardPlace& place : ShardPlaces(slide)) {
    if (place.level != 0) break;
    PB_ASSIGN_OR_RETURN(const auto colours, ReadColours(slide, place));
    if (colours) PB_RETURN_IF_ERROR(whole.Add(*colours));
    context.AddProgress();
    PB_RETURN_IF_ERROR(context.CheckCancelled());
  }
  return std::optional(whole.Take());
}

/// Records the stain fit of the whole slide, in its own colours and in those of its ICC profile.
Status AddFits(TaskContext& context, const IngestSlide& slide, const ops::StainHistogram& counts,
               Json& attributes) {
  const auto add_fit = [&](StainColours colours, const ops::StainFitOptions& options) {
    const auto judged = ops::JudgeStains(counts, options, [&context] { context.AddProgress(); });
    const StainAttributes names = StainAttributesOf(colours);
    attributes[names.fit] = JsonOf(ops::Rounded(judged.fit));
    attributes[names.evidence] = JsonOf(judged.evidence);
  };
  add_fit(StainColours::kDevice, {});
  const auto lookup = slide.source->ToSrgb();
  if (absl::IsInvalidArgument(lookup.status())) {
    attributes[plan::kIccToSrgb] = {{"fallback", plan::NameOf(plan::IccFallback::kUnusable)}};
    return absl::OkStatus();
  }
  if (!lookup.ok() || *lookup == nullptr) return lookup.status();
  ops::StainFitOptions options;
  options.to_srgb = [&icc = **lookup](float(&rgb)[3]) { icc.Apply(&rgb[0], &rgb[1], &rgb[2], 1); };
  attributes[plan::kIccToSrgb] = (*lookup)->ToJson();
  add_fit(StainColours::kSrgb, options);
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
  PB_ASSIGN_OR_RETURN(const StagedShards shards, ConfirmShards(context, slide, reported));
  outcome.absent_pieces = shards.absent_pieces;
  PB_RETURN_IF_ERROR(AddScannedArea(slide, spec.attributes));
  spec.attributes["absent_tiles"] = outcome.absent_pieces;
  PB_ASSIGN_OR_RETURN(const auto colours, ColoursOf(context, slide));
  if (colours) PB_RETURN_IF_ERROR(AddFits(context, slide, *colours, spec.attributes));
  PB_ASSIGN_OR_RETURN(const zarr::StoreRoots roots, zarr::CombineRoots(spec, shards.records));
  PB_RETURN_IF_ERROR(zarr::DraftStoreMetadata(context.allowed, slide.Store(), spec, roots));
  if (colours) {
    const std::string file = StrCat(slide.Store(), "/", zarr::kStainColoursFile);
    PB_RETURN_IF_ERROR(ReplaceFile(
        context.allowed, file, zarr::TiedBytes(ops::SerialiseHistogram(*colours), roots.pixels)));
  }
  PB_RETURN_IF_ERROR(StepOf(context));
  return PublishStaged(context, slide, {slide.Store(), spec, roots}, name, outcome);
}

/// Warnings about the colours of a slide's store.
std::vector<std::string> StainWarningsOf(const Folders& allowed, const std::string& store) {
  const auto stain = RecordedStainOf(allowed, store, StainColours::kDevice);
  if (!stain.ok() || !*stain) return {};
  std::vector<std::string> warnings;
  if (std::string misfit = (*stain)->Misfit(); !misfit.empty()) {
    warnings.push_back(std::move(misfit));
  } else if ((*stain)->evidence && (*stain)->evidence->pen > plan::kLeastPen) {
    const double percent = std::round(1000 * (*stain)->evidence->pen) / 10;
    warnings.push_back(StrCat("pen, ", percent, " % of the tissue, is left out of the stain fit"));
  }
  return warnings;
}

/// The warnings that a store of a volume holds; none from stores of other writers with another
/// value there.
std::vector<std::string> WarningsOf(const Folders& allowed, const std::string& store) {
  std::vector<std::string> warnings;
  const Json listed = zarr::OwnAttributes(allowed, store).value("warnings", Json::array());
  if (!listed.is_array()) return warnings;
  for (const Json& one : listed) {
    if (one.is_string()) warnings.push_back(one.get<std::string>());
  }
  return warnings;
}

}  // namespace

StatusOr<TaskOutput> RunIngestFinalise(TaskContext& context) {
  PB_ASSIGN_OR_RETURN(IngestSlide slide, OpenIngestSlide(context));
  PB_ASSIGN_OR_RETURN(SlideOutcome outcome, LoadOutcome(slide));
  PB_ASSIGN_OR_RETURN(const Digest source, Digest::FromHex(outcome.source_sha256));
  PB_ASSIGN_OR_RETURN(const std::string name, StoreName(slide, slide.path, source));
  PB_ASSIGN_OR_RETURN(bool there, AdoptFinishedStore(context, slide, name, outcome));
  if (!there) {
    const auto lock = StagingLock::Take(context, slide);
    // A copy of the slide may have finished its store first.
    PB_ASSIGN_OR_RETURN(there, AdoptFinishedStore(context, slide, name, outcome));
    if (!there) PB_RETURN_IF_ERROR(lock.status());
    if (!there) PB_RETURN_IF_ERROR(WriteAndPublish(context, slide, name, outcome));
  }
  PB_ASSIGN_OR_RETURN(TaskOutput output, EndSource(context, slide, outcome));
  AddTissueTask(slide, name, output);
  return output;
}

StatusOr<StagedSummary> SummariseIngest(TaskContext& context) {
  PB_ASSIGN_OR_RETURN(IngestTask task, OpenIngestJob(context));
  results::IngestSummary summary;
  std::vector<std::vector<std::string>> rows;
  const auto sources = static_cast<std::int64_t>(task.manifest.sources.size());
  std::vector<StoredTiles> tiles;
  for (task.slide = 0; task.slide < sources; ++task.slide) {
    const auto outcome = LoadOutcome(task);
    context.AddProgress();
    if (!outcome.ok() || outcome->store.empty()) {
      summary.missing.push_back(task.slide);
      if (outcome.ok()) RemoveTree(context, task.Staging()).IgnoreError();
      continue;
    }
    summary.stores.push_back(outcome->Row(task.slide));
    if (Exists(context.allowed, task.VolumeFile())) {
      summary.stores.back().warnings =
          WarningsOf(context.allowed, task.folders.InOut(outcome->store));
    } else {
      summary.stores.back().warnings =
          StainWarningsOf(context.allowed, task.folders.InOut(outcome->store));
      if (LacksTissue(task, outcome->store)) summary.without_tissue.push_back(task.slide);
    }
    PB_ASSIGN_OR_RETURN(std::vector<std::string> pictures, SavedTiles(task));
    if (!pictures.empty()) {
      PB_ASSIGN_OR_RETURN(tiles.emplace_back(),
                          StoredTilesOf(task, outcome->store, std::move(pictures)));
    }
    rows.push_back({outcome->store, task.Source(), outcome->source_sha256, outcome->digest,
                    outcome->pixel_digest});
  }
  PB_RETURN_IF_ERROR(MergeIntoTable(task.folders, "manifest.csv", kManifestHeader, 2, rows));
  if (!tiles.empty()) PB_RETURN_IF_ERROR(WriteTileTables(task.folders, tiles));
  for (const char* name : {"manifest.csv", "verdicts.csv", kTilesDataset, kTilesPositions}) {
    PB_RETURN_IF_ERROR(ShareFiles(context.allowed, task.folders.InOut(name), context.sharing));
  }
  const bool is_whole = summary.missing.empty() && summary.without_tissue.empty();
  if (is_whole) {  // a list of failures is from before a retry
    RemoveFile(context.allowed, task.folders.InOut("failed.csv")).IgnoreError();
  }
  return StagedSummary{JsonOf(summary), is_whole};
}

}  // namespace patchbay::workers
