// The root task: which slides, is there room, and one task for each.
#include <algorithm>
#include <array>
#include <filesystem>
#include <set>

#include "runtime/base/file.h"
#include "runtime/base/strings.h"
#include "workers/jobs/ingest.h"
#include "workers/jobs/ingest_levels.h"
#include "workers/jobs/ingest_staging.h"

namespace patchbay::workers {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kMaxSlides = 20'000;
constexpr int kMaxFolderDepth = 16;
constexpr std::array kSlideExtensions = {".svs", ".tif", ".tiff", ".btf",  ".ndpi",   ".scn",
                                         ".vms", ".vmu", ".bif",  ".mrxs", ".svslide"};
/// Lossless pixels compress at least this little on dense tissue and about this much on typical
/// slides (measured: 1.4 to 2.7 with zstd, less with lz4). The typical value estimates, half of it
/// refuses.
constexpr double kTypicalRatio = 2.0;

bool LooksLikeASlide(const fs::path& path) {
  std::string extension = path.extension().string();
  std::transform(extension.begin(), extension.end(), extension.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return path.filename().string().front() != '.' &&
         std::find(kSlideExtensions.begin(), kSlideExtensions.end(), extension) !=
             kSlideExtensions.end();
}

Status TooMany() {
  return absl::InvalidArgumentError(StrCat("ingest: more than ", kMaxSlides, " slides in one job"));
}

Status AddFolder(const TaskContext& context, const std::string& folder,
                 std::set<std::string>& sources) {
  std::error_code error;
  auto it = fs::recursive_directory_iterator(folder, fs::directory_options::skip_permission_denied,
                                             error);
  if (error) return FromErrno("list", folder, error.value());
  for (; it != fs::recursive_directory_iterator(); it.increment(error)) {
    if (error) return FromErrno("list", folder, error.value());
    if (it.depth() >= kMaxFolderDepth) it.disable_recursion_pending();
    if (it->is_directory(error)) {
      const std::string name = it->path().filename().string();
      if (name.front() == '.' || fs::path(name).extension() == ".zarr")
        it.disable_recursion_pending();
      continue;
    }
    if (!it->is_regular_file(error) || !LooksLikeASlide(it->path())) continue;
    PB_ASSIGN_OR_RETURN(const std::string path, context.MayRead(it->path().string()));
    sources.insert(path);
    if (sources.size() > kMaxSlides) return TooMany();
  }
  return absl::OkStatus();
}

/// Files are taken in the order they are named, folders are replaced by the slides in them, sorted;
/// each slide once. The same command gives the same job key.
StatusOr<std::vector<std::string>> ExpandSources(const TaskContext& context) {
  PB_ASSIGN_OR_RETURN(const Json* named,
                      JsonMember(context.manifest, "sources", "ingest manifest"));
  std::vector<std::string> sources;
  std::set<std::string> seen;
  for (const Json& source : *named) {
    if (!source.is_string())
      return absl::InvalidArgumentError("ingest manifest: sources: not text");
    PB_ASSIGN_OR_RETURN(const std::string path, context.MayRead(source.get<std::string>()));
    std::set<std::string> found = {path};
    if (fs::is_directory(path)) {
      found.clear();
      PB_RETURN_IF_ERROR(AddFolder(context, path, found));
    }
    for (const std::string& slide : found) {
      if (seen.insert(slide).second) sources.push_back(slide);
    }
    if (sources.size() > kMaxSlides) return TooMany();
  }
  if (sources.empty()) return absl::InvalidArgumentError("ingest: no slide among the sources");
  return sources;
}

/// Raw bytes of the levels that would be stored; 0 for a slide that does not open (its own task
/// says why).
std::uint64_t RawBytes(const std::string& path, const IngestSettings& settings) {
  const auto source = OpenImage(path);
  if (!source.ok()) return 0;
  const ImageLayout& layout = (*source)->layout();
  const auto levels = PlanLevels(layout, settings);
  if (!levels.ok()) return 0;
  std::uint64_t bytes = 0;
  for (const OutputLevel& level : *levels) {
    if (level.stored) {
      bytes += static_cast<std::uint64_t>(level.height * level.width) *
               static_cast<std::uint64_t>(layout.channels) * SizeOf(layout.dtype);
    }
  }
  return bytes;
}

struct Space {
  std::uint64_t estimated_bytes = 0, free_bytes = 0;
};

StatusOr<Space> CheckSpace(TaskContext& context, const IngestFolders& folders,
                           const IngestManifest& manifest) {
  Space space;
  for (const std::string& source : manifest.sources) {
    PB_RETURN_IF_ERROR(context.CheckCancelled());
    space.estimated_bytes += static_cast<std::uint64_t>(
        static_cast<double>(RawBytes(source, manifest.settings)) / kTypicalRatio);
    context.AddProgress();
  }
  PB_ASSIGN_OR_RETURN(space.free_bytes, FreeBytes(folders.out));
  if (space.free_bytes < space.estimated_bytes / 2) {
    return absl::FailedPreconditionError(
        StrCat("ingest: ", folders.out, ": about ", HumanBytes(space.estimated_bytes),
               " are needed and ", HumanBytes(space.free_bytes), " are free"));
  }
  return space;
}

std::vector<protocol::TaskSpec> TasksFor(const IngestFolders& folders, std::size_t slides) {
  std::vector<protocol::TaskSpec> tasks;
  for (std::size_t i = 0; i < slides; ++i) {
    protocol::TaskSpec open;
    open.op = "ingest.open";
    open.payload = DumpJson({{"job_key", folders.job_key}, {"slide", i}});
    open.group = static_cast<std::uint32_t>(i) + 1;
    open.label = StrCat("slide ", i);
    tasks.push_back(std::move(open));
  }
  protocol::TaskSpec summary;
  summary.op = "ingest.summary";
  summary.payload = DumpJson({{"job_key", folders.job_key}});
  summary.after_failures = true;
  summary.label = "summary";
  tasks.push_back(std::move(summary));
  return tasks;
}

StatusOr<TaskOutput> Plan(TaskContext& context) {
  PB_ASSIGN_OR_RETURN(IngestFolders folders, FoldersOf(context));
  IngestManifest manifest;
  PB_ASSIGN_OR_RETURN(manifest.settings, ParseIngestSettings(context.payload));
  if (context.manifest.contains("pseudonym_key")) {
    PB_ASSIGN_OR_RETURN(manifest.pseudonym_key,
                        JsonString(context.manifest, "pseudonym_key", "ingest manifest"));
  }
  if (manifest.pseudonym_key.empty() && !manifest.settings.keep_names) {
    return absl::InvalidArgumentError("ingest manifest: pseudonym_key is missing (or keep names)");
  }
  PB_ASSIGN_OR_RETURN(manifest.sources, ExpandSources(context));
  PB_RETURN_IF_ERROR(MakeDirectories(folders.out));
  folders.job_key =
      Sha256Of(StrCat(DumpJson(ToJson(manifest.settings)), "\n", StrJoin(manifest.sources, "\n")))
          .Hex()
          .substr(0, 32);
  PB_RETURN_IF_ERROR(SaveManifest(folders, manifest));
  PB_ASSIGN_OR_RETURN(const Space space, CheckSpace(context, folders, manifest));
  TaskOutput output;
  output.spawned = TasksFor(folders, manifest.sources.size());
  output.result = DumpJson({{"job_key", folders.job_key},
                            {"slides", manifest.sources.size()},
                            {"summary_task", manifest.sources.size() + 1},
                            {"estimated_bytes", space.estimated_bytes},
                            {"free_bytes", space.free_bytes},
                            {"staging", ".patchbay-ingest"}});
  return output;
}

}  // namespace

StatusOr<TaskOutput> RunIngestPlan(TaskContext& context) {
  return WithoutPaths(context, Plan(context));
}

}  // namespace patchbay::workers
