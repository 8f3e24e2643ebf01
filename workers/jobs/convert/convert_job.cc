// The tasks of the job: finds stores, converts each under a name of its own, sums up.
#include <algorithm>
#include <filesystem>
#include <map>

#include "runtime/core/outcome.h"
#include "runtime/core/strings.h"
#include "runtime/format/json/described.h"
#include "runtime/format/zarr/file_byte_store.h"
#include "runtime/format/zarr/label_sets.h"
#include "runtime/format/zarr/publish.h"
#include "runtime/format/zarr/store_root.h"
#include "runtime/model/results/ingest_summary.h"
#include "runtime/os/available_memory.h"
#include "runtime/os/file.h"
#include "runtime/os/file_names.h"
#include "runtime/os/folder_listing.h"
#include "workers/jobs/convert/conversion.h"
#include "workers/jobs/convert/convert.h"
#include "workers/jobs/staged/own_table.h"
#include "workers/jobs/task/find_images.h"
#include "workers/jobs/task/folder_tree.h"
#include "workers/sources/tiff_index.h"

namespace patchbay::workers {
namespace {

constexpr std::string_view kStoreEnding = ".ome.zarr";
constexpr std::size_t kMaxOutcomeBytes = 64u << 10;

struct ConvertTask : StagedTask {
  using StagedTask::StagedTask;
  ConvertOptions options;

  std::string OutcomeFile() const { return folders.InJob(StrCat("slides/", slide, ".json")); }
};

StatusOr<ConvertTask> OpenConvertTask(const TaskContext& context) {
  ConvertTask task(context.allowed);
  PB_RETURN_IF_ERROR(OpenStagedJob(context, kConvertJob, task));
  PB_ASSIGN_OR_RETURN(task.options,
                      ReadPayload<ConvertOptions>(task.manifest.settings, "convert settings"));
  return task;
}

/// "a.ome.zarr", or "a.svs" for a file.
std::string NameFor(const ConvertOptions& options, const std::string& store) {
  std::string name = std::filesystem::path(store).filename().string();
  if (options.MakesStore()) return name;
  if (name.ends_with(kStoreEnding)) name.resize(name.size() - kStoreEnding.size());
  return StrCat(name, options.to == "ome-tiff" ? ".ome.tiff" : StrCat(".", options.to));
}

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
    const auto [place, is_first] = by_name.try_emplace(NameFor(task.options, image), image);
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

StatusOr<Conversion> OpenConversion(TaskContext& context, const ConvertTask& task) {
  Conversion from;
  from.options = task.options;
  PB_ASSIGN_OR_RETURN(from.path, context.MayRead(task.Source()));
  PB_ASSIGN_OR_RETURN(from.store, zarr::OpenStore(context.allowed, from.path));
  from.attributes = zarr::OwnAttributes(context.allowed, from.path);
  if (!from.store.faults.empty() || !from.store.recorded) {
    return ErrorAbout(absl::StatusCode::kDataLoss, "convert", from.path,
                      from.store.faults.empty() ? "it has no digests" : from.store.faults.front());
  }
  PB_ASSIGN_OR_RETURN(const auto image, OpenImage(context.allowed, from.path));
  from.layout = image->layout();
  return from;
}

/// Whether `target` is what the conversion makes. AlreadyExists when it is something else.
StatusOr<bool> IsThere(const TaskContext& context, const Conversion& from,
                       const std::string& target) {
  if (!Exists(context.allowed, target, false)) return false;
  bool is_same = false;
  if (from.options.MakesStore()) {
    const Json made = zarr::OwnAttributes(context.allowed, target);
    is_same = made.value("codec_plan", Json()) == CodecPlanOf(from) &&
              made.value("source_sha256", "") == from.attributes.value("source_sha256", "") &&
              (from.store.digests_tiles ||
               made.value("pixel_digest", "") == from.store.recorded->pixels.Hex());
  } else if (const auto file = zarr::OpenStoredFile(context.allowed, target); file.ok()) {
    const auto index = TiffIndex::Read(*file);
    is_same =
        index.ok() && !index->directories().empty() &&
        index->ReadDescription(index->directories().front()).value_or("") == DescriptionOf(from);
  }
  if (is_same) return true;
  return ErrorAbout(absl::StatusCode::kAlreadyExists, "convert", target,
                    "exists and is not this store converted so; give another --out");
}

/// Bytes of a store without its label sets.
std::uint64_t BytesOfStore(TaskContext& context, const std::string& store) {
  const std::uint64_t all = BytesBelow(context, store);
  return all - std::min(all, BytesBelow(context, StrCat(store, "/", zarr::kLabelsFolder)));
}

/// Aside in the job's folder, then by one rename: a killed task leaves nothing of that name.
Status Publish(TaskContext& context, const ConvertTask& task, const Conversion& from,
               const std::string& target) {
  if (!from.options.MakesStore()) {
    PB_RETURN_IF_ERROR(WriteSlideFile(context, from, target));
    return ShareFiles(context.allowed, target, context.sharing);
  }
  const std::string staging =
      task.folders.InJob(StrCat("staging/", task.slide, "-", Hex64(RandomU64())));
  const auto roots = RecodeStore(context, from, staging);
  Status done = roots.status();
  if (done.ok()) done = ShareFiles(context.allowed, staging, context.sharing);
  if (done.ok()) {
    done = zarr::PublishStore(context.allowed, staging, target, [&] { context.AddProgress(); });
  }
  RemoveTree(context, staging).IgnoreError();
  return done;
}

/// Two and a half times a zarr shard's pixels, and what codecs take; never more than this node lets
/// a task use.
std::uint64_t TaskMemoryBytes(const zarr::ImageStoreSettings& store) {
  constexpr std::uint64_t kBeside = std::uint64_t{96} << 20;
  const auto raw = static_cast<std::uint64_t>(store.shard.Pixels() * store.PixelBytes());
  return std::min(raw / 2 * 5 + kBeside, OwnMemoryLimit().bytes / 100 * kMemoryUsePercent);
}

/// Tells what the conversion needs before it starts.
StatusOr<TaskOutput> RunConvertOpen(TaskContext& context) {
  PB_ASSIGN_OR_RETURN(ConvertTask task, OpenConvertTask(context));
  PB_RETURN_IF_ERROR(TakeSlide(context, task));
  PB_ASSIGN_OR_RETURN(const Conversion from, OpenConversion(context, task));
  TaskOutput output;
  protocol::TaskSpec make = task.Part("convert.store", task.options.to);
  make.weight = std::max<std::uint64_t>(1, BytesOfStore(context, from.path));
  make.resources.memory_bytes = TaskMemoryBytes(from.store.settings);
  output.spawned.push_back(std::move(make));
  return output;
}

StatusOr<TaskOutput> RunConvertStore(TaskContext& context) {
  PB_ASSIGN_OR_RETURN(ConvertTask task, OpenConvertTask(context));
  PB_RETURN_IF_ERROR(TakeSlide(context, task));
  PB_ASSIGN_OR_RETURN(const Conversion from, OpenConversion(context, task));
  const std::string name = NameFor(task.options, from.path);
  const std::string target = task.folders.InOut(name);
  results::IngestedStore row;
  row.name = name;
  row.source_index = task.slide;
  PB_ASSIGN_OR_RETURN(row.already_there, IsThere(context, from, target));
  if (!row.already_there) {
    const Status published = Publish(context, task, from, target);
    // A task that lost its lease may have been first.
    if (!published.ok() && !IsThere(context, from, target).value_or(false)) return published;
  }
  row.source_bytes = BytesOfStore(context, from.path);
  if (task.options.MakesStore()) {
    const Json made = zarr::OwnAttributes(context.allowed, target);
    row.stored_bytes = BytesOfStore(context, target);
    row.digest = made.value("digest", "");
    row.pixel_digest = made.value("pixel_digest", "");
  } else {
    PB_ASSIGN_OR_RETURN(row.stored_bytes, SizeOf(context.allowed, target));
    row.digest = from.store.recorded->bytes.Hex();
    row.pixel_digest = from.store.recorded->pixels.Hex();
  }
  TaskOutput output;
  output.result = DumpJson(JsonOf(row));
  output.progress_bytes = row.source_bytes;
  PB_RETURN_IF_ERROR(
      WriteFileDurably(context.allowed, task.OutcomeFile(), AsBytes(output.result), 0600));
  return output;
}

StatusOr<results::IngestedStore> LoadRow(const ConvertTask& task) {
  PB_ASSIGN_OR_RETURN(const std::string text,
                      ReadFile(task.folders.allowed, task.OutcomeFile(), kMaxOutcomeBytes));
  PB_ASSIGN_OR_RETURN(const Json json, ParseJson(text, "outcome of a store"));
  return FromJson<results::IngestedStore>(json, "outcome of a store");
}

StatusOr<StagedSummary> SummariseConvert(TaskContext& context) {
  PB_ASSIGN_OR_RETURN(ConvertTask task, OpenConvertTask(context));
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

constexpr Stage kStages[] = {{"open", RunConvertOpen}, {"store", RunConvertStore}};

}  // namespace

const StagedJob kConvertJob = {"convert", FindStores, kStages, SummariseConvert};

}  // namespace patchbay::workers
