// The root task: checks the disk space for the sources, and spawns a task for each.
#include <algorithm>

#include "runtime/core/outcome.h"
#include "runtime/core/strings.h"
#include "runtime/model/source/channel_names.h"
#include "runtime/os/file.h"
#include "runtime/os/folder_listing.h"
#include "workers/jobs/ingest/ingest.h"
#include "workers/jobs/ingest/ingest_publish.h"
#include "workers/jobs/ingest/ingest_sources.h"
#include "workers/jobs/ingest/ingest_staging.h"
#include "workers/jobs/ingest/ingest_volume.h"
#include "workers/jobs/ingest/levels.h"
#include "workers/jobs/ingest/tile_source.h"
#include "workers/jobs/staged/own_table.h"
#include "workers/jobs/task/folder_tree.h"
#include "workers/jobs/task/identity.h"
#include "workers/jobs/task/image_digest.h"
#include "workers/jobs/task/stated_modality.h"
#include "workers/jobs/task/task.h"
#include "workers/sources/dicom_slide.h"
#include "workers/sources/tile_mosaic.h"

namespace patchbay::workers {
namespace {

/// Lossless pixels compress at least this little on dense tissue and about this much on typical
/// slides (measured: 1.4 to 2.7 with zstd, less with lz4). The typical value estimates; where not
/// even half of the estimate fits, the job is refused. In between the command warns.
constexpr double kTypicalRatio = 2.0;

std::uint64_t CompressedBytes(std::uint64_t raw) {
  return static_cast<std::uint64_t>(static_cast<double>(raw) / kTypicalRatio);
}

std::uint64_t EstimateStore(const ImageSource& source, const IngestSettings& settings) {
  const ImageLayout& layout = source.layout();
  const auto levels = PlanLevels(layout, settings);
  if (!levels.ok()) return 0;
  std::uint64_t bytes = 0;
  for (const OutputLevel& level : *levels) {
    if (level.stored) {
      bytes += static_cast<std::uint64_t>(level.size.Pixels()) *
               static_cast<std::uint64_t>(layout.channels) * SizeOf(layout.dtype);
    }
  }
  return CompressedBytes(bytes);
}

/// The expected size of a slide's store; 0 for a slide that does not open (its own task says why).
std::uint64_t EstimateStore(TaskContext& context, const std::string& path,
                            const IngestSettings& settings) {
  if (settings.KeepsTiles()) return BytesOfSlide(context, path);
  const auto source = OpenChosenSlide(context.allowed, path, settings.choice);
  return source.ok() ? EstimateStore(**source, settings) : 0;
}

/// Annotation in pixels may name a patient: the operator of the node decides.
Status MayTakeBurnedIn(const TaskContext& context, const std::vector<std::string>& repairs) {
  if (context.may_take_burned_in) return absl::OkStatus();
  for (const std::string& rules : repairs) {
    PB_ASSIGN_OR_RETURN(const Repairs parsed, ParseRepairs(rules));
    if (!parsed.contains(Repair::kBurnedIn)) continue;
    return absl::PermissionDeniedError(
        "--repair burned-in: pixels may show names, and the site of the cluster's nodes does not "
        "allow it (`burned_in: true` in site.yaml, read by `up` and `join`)");
  }
  return absl::OkStatus();
}

/// The order of trust: the table, the flag, what stands beside the file.
Status SettleModality(const TaskContext& context, const IngestSettings& settings,
                      const std::string& channel, PlannedVolume& volume) {
  const auto stated = StatedModality(context, volume.format, volume.files.front(), channel);
  if (!volume.modality && !settings.modality.empty()) {
    PB_ASSIGN_OR_RETURN(const Modality modality, ParseModality(settings.modality));
    volume.modality = ModalityRecord{modality, "--modality"};
  }
  if (!volume.modality) {
    volume.modality = stated;
  } else if (stated && *stated != static_cast<const Modality&>(*volume.modality)) {
    volume.modality->stated = *stated;
  }
  return absl::OkStatus();
}

StatusOr<PlannedImage> WithModality(const TaskContext& context, const IngestSettings& settings,
                                    PlannedImage image) {
  for (PlannedChannel& channel : image.channels) {
    PB_RETURN_IF_ERROR(SettleModality(context, settings, channel.name, channel));
  }
  PB_RETURN_IF_ERROR(SettleModality(context, settings, "", image));
  return image;
}

struct Space {
  std::uint64_t estimated_bytes = 0, free_bytes = 0;
};

StatusOr<Space> CheckSpace(TaskContext& context, const IngestTask& task,
                           const FoundSources& sources) {
  Space space;
  for (std::size_t i = 0; i < sources.names.size(); ++i) {
    PB_RETURN_IF_ERROR(context.CheckCancelled());
    const auto volume = sources.volumes.find(i);
    const auto tiles = sources.tiles.find(i);
    if (volume != sources.volumes.end()) {
      space.estimated_bytes += CompressedBytes(volume->second.voxel_bytes);
    } else if (tiles != sources.tiles.end()) {
      const auto mosaic = OpenTileMosaic(context.allowed, sources.names[i], tiles->second.files);
      space.estimated_bytes += mosaic.ok() ? EstimateStore(**mosaic, task.settings) : 0;
    } else {
      IngestSettings settings = task.settings;
      const auto choice = sources.choices.find(i);
      if (choice != sources.choices.end()) settings.choice = choice->second;
      space.estimated_bytes += EstimateStore(context, sources.names[i], settings);
    }
    context.AddProgress();
  }
  PB_ASSIGN_OR_RETURN(space.free_bytes, FreeBytes(context.allowed, task.folders.out));
  if (space.free_bytes >= space.estimated_bytes) return space;
  // An earlier run's output, finished or not, is not written again.
  space.estimated_bytes -= std::min(space.estimated_bytes, BytesBelow(context, task.folders.out));
  const std::uint64_t least_bytes = space.estimated_bytes / 2;
  if (space.free_bytes >= least_bytes) return space;
  return ErrorAbout(
      absl::StatusCode::kFailedPrecondition, "ingest", task.folders.out,
      StrCat("about ", HumanBytes(space.estimated_bytes), " will be written, at least ",
             HumanBytes(least_bytes), ", and ", HumanBytes(space.free_bytes), " are free"));
}

/// The tables that the job, or its command at the end, replaces or removes.
Status CheckTables(const StagedFolders& folders) {
  PB_RETURN_IF_ERROR(CheckOwnTable(folders, "manifest.csv", kManifestHeader));
  PB_RETURN_IF_ERROR(CheckOwnTable(folders, "verdicts.csv", kVerdictsHeader));
  return CheckOwnTable(folders, "failed.csv", kFailedHeader);
}

StatusOr<PlannedJob> FindIngest(TaskContext& context, const StagedFolders& folders) {
  IngestTask task(context.allowed);
  task.folders = folders;
  PB_RETURN_IF_ERROR(CheckTables(task.folders));
  PB_ASSIGN_OR_RETURN(task.settings,
                      ReadPayload<IngestSettings>(context.payload, "ingest settings", kKeysOfRows));
  if (task.settings.codec == kAutoCodec) {
    return InvalidArgument("ingest settings: codec: the command settles `auto` before it submits");
  }
  task.manifest.settings = ToJson(task.settings);
  PB_ASSIGN_OR_RETURN(const auto asked, FromJson<JobManifest>(context.manifest, "ingest manifest"));
  task.manifest.pseudonym_key = asked.pseudonym_key;
  if (task.manifest.pseudonym_key.empty() && !task.settings.keep_names) {
    return InvalidArgument("ingest manifest: pseudonym_key is missing (or keep names)");
  }
  PB_ASSIGN_OR_RETURN(const SourceRows rows,
                      ReadSourceRows(asked, context.payload, task.settings.repair));
  PB_RETURN_IF_ERROR(MayTakeBurnedIn(context, rows.repairs));
  PB_ASSIGN_OR_RETURN(const FoundSources sources, FindSources(context, asked, rows));
  if (!sources.tiles.empty()) PB_RETURN_IF_ERROR(CheckTileTables(task.folders, sources));
  task.manifest.sources = sources.names;
  PB_RETURN_IF_ERROR(MakeDirectories(context.allowed, task.folders.out));
  std::string settings = StrCat(DumpJson(task.manifest.settings),
                                asked.modalities.empty() ? "" : DumpJson(asked.modalities));
  for (const char* key : {kChannelsOfRows, kRepairsOfRows, kChoicesOfRows}) {
    if (context.payload.contains(key)) settings += DumpJson(context.payload[key]);
  }
  task.folders.job_key = JobKeyOf(task.manifest, settings);
  PB_ASSIGN_OR_RETURN(const Space space, CheckSpace(context, task, sources));
  PB_RETURN_IF_ERROR(
      SaveStagedManifest(task.folders, task.manifest, {"volumes", "tiles", "choices"}));
  PB_RETURN_IF_ERROR(RecordMasks(task.folders, sources.masks));
  for (const auto& [index, volume] : sources.volumes) {
    task.slide = static_cast<std::int64_t>(index);
    PB_ASSIGN_OR_RETURN(const PlannedImage settled, WithModality(context, task.settings, volume));
    PB_RETURN_IF_ERROR(SavePlannedImage(task, settled));
    PB_RETURN_IF_ERROR(StepOf(context));
  }
  for (const auto& [index, tiles] : sources.tiles) {
    task.slide = static_cast<std::int64_t>(index);
    PB_RETURN_IF_ERROR(SaveTiles(task, tiles));
  }
  for (const auto& [index, choice] : sources.choices) {
    task.slide = static_cast<std::int64_t>(index);
    PB_RETURN_IF_ERROR(SaveChoice(task, choice));
  }
  RemoveOrphanedJobFolders(context, task.folders);
  return PlannedJob{.job_key = task.folders.job_key,
                    .sources = sources.names.size(),
                    .estimated_bytes = space.estimated_bytes,
                    .free_bytes = space.free_bytes,
                    .skipped_files = sources.skipped_files};
}

constexpr Stage kStages[] = {
    {"open", RunIngestOpen},
    {"shard", RunIngestShard, UnlessPublished},
    {"join", RunIngestJoin, UnlessPublished},
    {"check", RunIngestCheck, UnlessPublished},
    {"finalise", RunIngestFinalise},
    {"volume", RunIngestVolume},
};

}  // namespace

const StagedJob kIngestJob = {"ingest", FindIngest, kStages, SummariseIngest};

}  // namespace patchbay::workers