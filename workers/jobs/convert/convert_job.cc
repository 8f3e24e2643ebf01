// The first and the last task of the job: finds stores, sums up.
#include <filesystem>
#include <map>

#include "runtime/core/outcome.h"
#include "runtime/core/strings.h"
#include "runtime/format/json/described.h"
#include "runtime/format/zarr/store_root.h"
#include "runtime/model/results/ingest_summary.h"
#include "runtime/os/file.h"
#include "runtime/os/file_names.h"
#include "workers/jobs/convert/conversion.h"
#include "workers/jobs/convert/convert.h"
#include "workers/jobs/convert/convert_store.h"
#include "workers/jobs/staged/own_table.h"
#include "workers/jobs/task/find_images.h"

namespace patchbay::workers {
namespace {

constexpr std::string_view kStoreEnding = ".ome.zarr";
constexpr std::size_t kMaxOutcomeBytes = 64u << 10;

StatusOr<PlannedJob> FindStores(TaskContext& context, const StagedFolders& folders) {
  ConvertTask task(context.allowed);
  task.folders = folders;
  PB_RETURN_IF_ERROR(CheckOwnTable(folders, "manifest.csv", kManifestHeader));
  PB_RETURN_IF_ERROR(CheckOwnTable(folders, "failed.csv", kFailedHeader));
  PB_ASSIGN_OR_RETURN(task.options,
                      ReadPayload<ConvertOptions>(context.payload, "convert settings"));
  task.manifest.settings = PayloadOf(task.options);
  PB_ASSIGN_OR_RETURN(const auto asked,
                      FromJson<JobManifest>(context.manifest, "convert manifest"));
  PB_ASSIGN_OR_RETURN(const std::vector<std::string> images,
                      FindImages(context, asked.sources, {.most = kMaxSlides}));
  std::map<std::string, std::string> by_name;
  for (const std::string& image : images) {
    if (!zarr::IsStore(context.allowed, image)) {
      return ErrorAbout(absl::StatusCode::kInvalidArgument, "convert", image,
                        "no store: `patchbay ingest` makes one of it");
    }
    const auto [place, is_first] = by_name.try_emplace(task.NameFor(image), image);
    if (!is_first) {
      return ErrorAbout(absl::StatusCode::kInvalidArgument, "convert", image,
                        StrCat("duplicate name: another store is called ", place->first));
    }
  }
  task.manifest.sources = images;
  PB_RETURN_IF_ERROR(MakeDirectories(context.allowed, folders.out));
  task.folders.job_key = JobKeyOf(task.manifest, DumpJson(task.manifest.settings));
  PB_RETURN_IF_ERROR(SaveStagedManifest(task.folders, task.manifest, {"staging"}));
  RemoveOrphanedJobFolders(context, task.folders);
  return PlannedJob{.job_key = task.folders.job_key, .sources = images.size()};
}

StatusOr<results::IngestedStore> LoadRow(const ConvertTask& task) {
  PB_ASSIGN_OR_RETURN(const std::string text,
                      ReadFile(task.folders.allowed, task.OutcomeFile(), kMaxOutcomeBytes));
  PB_ASSIGN_OR_RETURN(const Json json, ParseJson(text, "outcome of a store"));
  return FromJson<results::IngestedStore>(json, "outcome of a store");
}

StatusOr<StagedSummary> SummariseConvert(TaskContext& context) {
  PB_ASSIGN_OR_RETURN(ConvertTask task, OpenConvertTask(context, kConvertJob));
  results::IngestSummary summary;
  std::vector<std::vector<std::string>> rows;
  const auto sources = static_cast<std::int64_t>(task.manifest.sources.size());
  for (task.slide = 0; task.slide < sources; ++task.slide) {
    context.AddProgress();
    const auto row = LoadRow(task);
    if (!row.ok()) {
      summary.missing.push_back(task.slide);
      continue;
    }
    const std::string source = zarr::SourceDigestOf(context.allowed, task.Source());
    rows.push_back({row->name, task.Source(), source, row->digest, row->pixel_digest});
    summary.stores.push_back(*row);
  }
  PB_RETURN_IF_ERROR(MergeIntoTable(task.folders, "manifest.csv", kManifestHeader, 2, rows));
  PB_RETURN_IF_ERROR(
      ShareFiles(context.allowed, task.folders.InOut("manifest.csv"), context.sharing));
  if (summary.missing.empty()) {  // a list of failures is from before a retry
    RemoveFile(context.allowed, task.folders.InOut("failed.csv")).IgnoreError();
  }
  return StagedSummary{JsonOf(summary), summary.missing.empty()};
}

/// A stage of one store.
template <StatusOr<TaskOutput> (*kRun)(TaskContext& context, const ConvertTask& task)>
StatusOr<TaskOutput> OfStore(TaskContext& context) {
  PB_ASSIGN_OR_RETURN(ConvertTask task, OpenConvertTask(context, kConvertJob));
  PB_RETURN_IF_ERROR(TakeSlide(context, task));
  return kRun(context, task);
}

constexpr Stage kStages[] = {{"open", OfStore<OpenStoreOf>},
                             {"part", OfStore<MakePartsOf>},
                             {"store", OfStore<FinishStoreOf>}};

}  // namespace

std::string ConvertTask::NameFor(const std::string& store) const {
  std::string name = std::filesystem::path(store).filename().string();
  if (options.MakesFolder()) return name;
  if (name.ends_with(kStoreEnding)) name.resize(name.size() - kStoreEnding.size());
  return StrCat(name, options.to == "ome-tiff" ? ".ome.tiff" : StrCat(".", options.to));
}

const StagedJob kConvertJob = {"convert", FindStores, kStages, SummariseConvert};

}  // namespace patchbay::workers
