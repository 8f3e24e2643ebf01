// The root task: finds the sources, checks the disk space, and spawns a task for each source.
#include <algorithm>
#include <map>
#include <set>

#include "runtime/core/counted.h"
#include "runtime/core/outcome.h"
#include "runtime/core/strings.h"
#include "runtime/model/source/series_path.h"
#include "runtime/os/file.h"
#include "runtime/os/folder_listing.h"
#include "workers/jobs/ingest/ingest.h"
#include "workers/jobs/ingest/ingest_publish.h"
#include "workers/jobs/ingest/ingest_staging.h"
#include "workers/jobs/ingest/ingest_volume.h"
#include "workers/jobs/ingest/levels.h"
#include "workers/jobs/staged/own_table.h"
#include "workers/jobs/task/find_images.h"
#include "workers/jobs/task/folder_tree.h"
#include "workers/jobs/task/identity.h"
#include "workers/jobs/task/mask_files.h"
#include "workers/jobs/task/stated_modality.h"
#include "workers/jobs/task/task.h"

namespace patchbay::workers {
namespace {

/// Lossless pixels compress at least this little on dense tissue and about this much on typical
/// slides (measured: 1.4 to 2.7 with zstd, less with lz4). The typical value estimates; where not
/// even half of the estimate fits, the job is refused. In between the command warns.
constexpr double kTypicalRatio = 2.0;

std::uint64_t CompressedBytes(std::uint64_t raw) {
  return static_cast<std::uint64_t>(static_cast<double>(raw) / kTypicalRatio);
}

/// The expected size of a slide's store; 0 for a slide that does not open (its own task says why).
std::uint64_t EstimateStore(const Folders& allowed, const std::string& path,
                            const IngestSettings& settings) {
  if (settings.KeepsTiles()) return SizeOf(allowed, path).value_or(0);
  const auto source = OpenImage(allowed, path);
  if (!source.ok()) return 0;
  const ImageLayout& layout = (*source)->layout();
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

/// The sources of a job in the order named, and the volumes among them.
struct FoundSources {
  std::vector<std::string> names;
  std::map<std::size_t, PlannedVolume> volumes;  ///< by place in `names`
  std::vector<std::string> dicom_slides;         ///< all files of DICOM slides
  std::map<std::string, std::string> masks;      ///< left out of folders: why, by path
  FilesByKind skipped_files;                     ///< files in folders that are none of them
};

VolumeFormat FormatByName(const std::string& path) {
  const bool is_nifti = path.ends_with(".nii") || path.ends_with(".gz");
  return is_nifti ? VolumeFormat::kNifti : VolumeFormat::kDicom;
}

/// "study#1.2.840.part2": without a path's mark, that of a series in a file.
std::string NameOfPart(const std::string& source, std::size_t part) {
  return StrCat(source, source.find('#') == std::string::npos ? "#part" : ".part", part);
}

/// Into how many volumes a series is split; one that cannot be opened is one, whose own task tells
/// why.
StatusOr<std::size_t> CountParts(TaskContext& context, const PlannedVolume& volume) {
  PB_ASSIGN_OR_RETURN(const Repairs rules, ParseRepairs(volume.repair));
  if (volume.format != VolumeFormat::kDicom || !rules.contains(Repair::kSplit)) return 1;
  const auto parts = OpenParts(context.allowed, volume.files, ProgressOf(context), rules);
  if (absl::IsCancelled(parts.status())) return parts.status();
  return parts.ok() ? parts->Count() : 1;
}

/// The facts about a source that come from its row in a table.
struct StatedFacts {
  std::optional<ModalityRecord> modality;
  std::string repair;  ///< the settings' where the row has none
};

/// A file that should be a volume but is none is added too, and so is a DICOM slide: their reason
/// shows when they are read.
Status AddVolumes(TaskContext& context, FoundVolumes found, const StatedFacts& stated,
                  FoundSources& sources, std::set<std::string>& seen) {
  for (const std::string& path : found.unreadable) {
    found.volumes.push_back({path, FormatByName(path), {path}, 0});
  }
  for (const std::vector<std::string>& slide : found.slides) {
    if (seen.insert(slide.front()).second) sources.names.push_back(slide.front());
    sources.dicom_slides.insert(sources.dicom_slides.end(), slide.begin(), slide.end());
  }
  for (FoundVolume& volume : found.volumes) {
    if (sources.masks.contains(volume.name)) continue;
    if (!seen.insert(volume.name).second) continue;
    PlannedVolume planned{volume.format, std::move(volume.files), volume.voxel_bytes,
                          stated.modality, stated.repair};
    PB_ASSIGN_OR_RETURN(const std::size_t parts, CountParts(context, planned));
    for (std::size_t part = parts > 1 ? 1 : 0; part <= (parts > 1 ? parts : 0); ++part) {
      planned.part = part;
      planned.voxel_bytes = volume.voxel_bytes / parts;
      sources.volumes[sources.names.size()] = planned;
      sources.names.push_back(part == 0 ? volume.name : NameOfPart(volume.name, part));
    }
  }
  return absl::OkStatus();
}

/// The search for slides skips the files of volumes.
void LeaveOutVolumes(FoundSources& sources) {
  for (const auto& [place, volume] : sources.volumes) LeaveOut(volume.files, sources.skipped_files);
  LeaveOut(sources.dicom_slides, sources.skipped_files);
  for (const auto& [mask, reason] : sources.masks) {
    LeaveOut({mask}, sources.skipped_files);
    ++sources.skipped_files["mask"];
  }
}

/// Marks the volumes of a folder that are masks. One that is named itself, before or after the
/// folder, is none.
Status FindMasks(TaskContext& context, const FoundVolumes& found, bool is_folder,
                 const std::set<std::string>& seen, FoundSources& sources) {
  for (const FoundVolume& volume : found.volumes) {
    if (!is_folder) sources.masks.erase(volume.name);
    if (!is_folder || seen.contains(volume.name)) continue;
    PB_ASSIGN_OR_RETURN(const std::string reason, MaskReason(context, volume));
    if (!reason.empty()) sources.masks.emplace(volume.name, reason);
  }
  return absl::OkStatus();
}

/// The slides of a folder but for masks, or a file that is named itself.
Status AddSlides(TaskContext& context, const std::vector<std::string>& slides, bool is_folder,
                 FoundSources& sources, std::set<std::string>& seen) {
  for (const std::string& slide : slides) {
    std::string mask;
    if (!is_folder) sources.masks.erase(slide);
    if (is_folder && !seen.contains(slide)) {
      PB_ASSIGN_OR_RETURN(mask, MaskReason(context, slide));
    }
    if (!mask.empty()) {
      sources.masks.emplace(slide, mask);
    } else if (seen.insert(slide).second) {
      sources.names.push_back(slide);
    }
  }
  return absl::OkStatus();
}

Status OnlyMasks(const std::string& folder, std::size_t masks) {
  return ErrorAbout(absl::StatusCode::kNotFound, "find images", folder,
                    StrCat("no images, only ", Counted(masks, "mask"),
                           " (all values are classes): name the files that are images"));
}

/// The one series, named by its pseudonym, among the volumes of a folder.
StatusOr<FoundVolumes> OnlySeries(const FoundVolumes& found, const SeriesPath& named,
                                  const std::string& key) {
  FoundVolumes one;
  for (const FoundVolume& volume : found.volumes) {
    if (PseudonymOf(key, "series", volume.series_uid) == named.series)
      one.volumes.push_back(volume);
  }
  if (!one.volumes.empty()) return one;
  return ErrorAbout(
      absl::StatusCode::kNotFound, "find volumes", named.path,
      StrCat("the series ", named.series,
             " is not there: moved since it was scanned, or scanned under another pseudonym key"));
}

/// Finds the volumes below the paths of sources. A folder is searched once, even if several of its
/// series are named one after another.
class VolumeFinder {
 public:
  VolumeFinder(TaskContext& context, std::string key) : context_(context), key_(std::move(key)) {}

  StatusOr<FoundVolumes> Find(const SeriesPath& named) {
    const auto may_read = [&](const std::string& path) { return context_.MayRead(path); };
    const auto progress = ProgressOf(context_);
    if (named.series.empty()) return FindVolumes(context_.allowed, named.path, may_read, progress);
    if (named.path != folder_) {
      PB_ASSIGN_OR_RETURN(found_, FindVolumes(context_.allowed, named.path, may_read, progress));
      folder_ = named.path;
    }
    return OnlySeries(found_, named, key_);
  }

 private:
  TaskContext& context_;
  const std::string key_;
  std::string folder_;  ///< the last of which a series was named
  FoundVolumes found_;
};

/// The rules of each source: those of its row, else the settings'.
StatusOr<std::vector<std::string>> RepairsOfSources(const JobManifest& asked, const Json& payload,
                                                    const std::string& otherwise) {
  std::vector<std::string> repairs(asked.sources.size(), otherwise);
  const Json stated = payload.value(kRepairsOfRows, Json::object());
  for (const auto& [rules, rows] : stated.items()) {
    for (const Json& row : rows) {
      if (!row.is_number_unsigned() || row.get<std::size_t>() >= repairs.size()) {
        return InvalidArgument("ingest settings: ", kRepairsOfRows, ": no such source");
      }
      repairs[row.get<std::size_t>()] = rules;
    }
  }
  return repairs;
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

StatusOr<StatedFacts> FactsInTable(const JobManifest& asked, const std::string& source,
                                   const std::string& repair) {
  StatedFacts facts{std::nullopt, repair};
  const auto cell = asked.modalities.find(source);
  if (cell == asked.modalities.end()) return facts;
  PB_ASSIGN_OR_RETURN(const Modality modality, ParseModality(cell->second));
  facts.modality = ModalityRecord{modality, "table"};
  return facts;
}

/// The order of trust: the table, the flag, what stands beside the file.
StatusOr<PlannedVolume> WithModality(const TaskContext& context, const IngestSettings& settings,
                                     PlannedVolume volume) {
  const auto stated = StatedModality(context, volume.format, volume.files.front());
  if (!volume.modality && !settings.modality.empty()) {
    PB_ASSIGN_OR_RETURN(const Modality modality, ParseModality(settings.modality));
    volume.modality = ModalityRecord{modality, "--modality"};
  }
  if (!volume.modality) {
    volume.modality = stated;
  } else if (stated && *stated != static_cast<const Modality&>(*volume.modality)) {
    volume.modality->stated = *stated;
  }
  return volume;
}

StatusOr<FoundSources> FindSources(TaskContext& context, const JobManifest& asked,
                                   const std::vector<std::string>& repairs) {
  FoundSources sources;
  std::set<std::string> seen;
  VolumeFinder finder(context, asked.series_key);
  for (std::size_t i = 0; i < asked.sources.size(); ++i) {
    const std::string& path = asked.sources[i];
    const std::size_t before = seen.size();
    const bool is_there = Exists(context.allowed, path);
    const SeriesPath series = is_there ? SeriesPath{path, ""} : SplitSeriesPath(path);
    // A path that cannot be searched for volumes is searched for slides: that search keeps
    // unreadable paths.
    auto found = finder.Find(series);
    if (absl::IsCancelled(found.status())) return found.status();
    if (!found.ok() && !series.series.empty()) return found.status();
    const bool is_folder = IsFolder(context.allowed, path);
    const std::size_t masks_before = sources.masks.size();
    if (found.ok()) PB_RETURN_IF_ERROR(FindMasks(context, *found, is_folder, seen, sources));
    PB_ASSIGN_OR_RETURN(const StatedFacts stated, FactsInTable(asked, path, repairs[i]));
    if (found.ok()) {
      PB_RETURN_IF_ERROR(AddVolumes(context, *std::move(found), stated, sources, seen));
    }
    if (!series.series.empty()) continue;
    const bool has_volumes = seen.size() > before;
    if (has_volumes && !is_folder) continue;
    const auto slides = FindImages(context, {path},
                                   {.stores = false,
                                    .most = kMaxSlides,
                                    .keep_unreadable = true,
                                    .skipped_files = &sources.skipped_files});
    if (slides.ok()) {
      PB_RETURN_IF_ERROR(AddSlides(context, *slides, is_folder, sources, seen));
    } else if (!absl::IsNotFound(slides.status())) {
      return slides.status();
    }
    if (seen.size() > before) continue;
    const std::size_t masks = sources.masks.size() - masks_before;
    if (masks > 0) return OnlyMasks(path, masks);
    if (!slides.ok()) return slides.status();
  }
  LeaveOutVolumes(sources);
  if (sources.names.size() <= kMaxSlides) return sources;
  return InvalidArgument("find images: more than ", kMaxSlides, " images; split the dataset");
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
    space.estimated_bytes += volume != sources.volumes.end()
                                 ? CompressedBytes(volume->second.voxel_bytes)
                                 : EstimateStore(context.allowed, sources.names[i], task.settings);
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
  PB_ASSIGN_OR_RETURN(task.settings, ReadPayload<IngestSettings>(context.payload, "ingest settings",
                                                                 {kRepairsOfRows}));
  task.manifest.settings = ToJson(task.settings);
  PB_ASSIGN_OR_RETURN(const auto asked, FromJson<JobManifest>(context.manifest, "ingest manifest"));
  task.manifest.pseudonym_key = asked.pseudonym_key;
  if (task.manifest.pseudonym_key.empty() && !task.settings.keep_names) {
    return InvalidArgument("ingest manifest: pseudonym_key is missing (or keep names)");
  }
  PB_ASSIGN_OR_RETURN(const auto repairs,
                      RepairsOfSources(asked, context.payload, task.settings.repair));
  PB_RETURN_IF_ERROR(MayTakeBurnedIn(context, repairs));
  PB_ASSIGN_OR_RETURN(const FoundSources sources, FindSources(context, asked, repairs));
  task.manifest.sources = sources.names;
  PB_RETURN_IF_ERROR(MakeDirectories(context.allowed, task.folders.out));
  const Json of_rows = context.payload.value(kRepairsOfRows, Json());
  task.folders.job_key =
      JobKeyOf(task.manifest, StrCat(DumpJson(task.manifest.settings),
                                     asked.modalities.empty() ? "" : DumpJson(asked.modalities),
                                     of_rows.is_null() ? "" : DumpJson(of_rows)));
  PB_ASSIGN_OR_RETURN(const Space space, CheckSpace(context, task, sources));
  PB_RETURN_IF_ERROR(SaveStagedManifest(task.folders, task.manifest, {"volumes"}));
  PB_RETURN_IF_ERROR(RecordMasks(task.folders, sources.masks));
  for (const auto& [index, volume] : sources.volumes) {
    task.slide = static_cast<std::int64_t>(index);
    PB_ASSIGN_OR_RETURN(const PlannedVolume settled, WithModality(context, task.settings, volume));
    PB_RETURN_IF_ERROR(SavePlannedVolume(task, settled));
    PB_RETURN_IF_ERROR(StepOf(context));
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
