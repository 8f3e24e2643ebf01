// One slide: what is it, is its store there already, and which shards make it.
#include <algorithm>

#include <sys/stat.h>

#include "runtime/base/file.h"
#include "runtime/base/strings.h"
#include "workers/jobs/ingest.h"
#include "workers/jobs/ingest_publish.h"
#include "workers/jobs/ingest_slide.h"
#include "workers/sources/digest_cache.h"

namespace patchbay::workers {
namespace {

constexpr std::size_t kMaxShardTasks = 15'000;

/// The tasks of the level above whose pixels this shard averages: at most four. `first_of_level` is
/// the place of each level's first shard in the task list.
std::vector<std::uint32_t> ParentsOf(const IngestSlide& slide,
                                     const std::vector<std::uint32_t>& first_of_level,
                                     const zarr::ShardPlace& place) {
  std::vector<std::uint32_t> parents;
  const OutputLevel& level =
      slide.levels[static_cast<std::size_t>(LevelOfStored(slide.levels, place.level))];
  if (level.from_source) return parents;
  const OutputLevel& parent = slide.levels[static_cast<std::size_t>(level.parent)];
  if (!parent.stored) return parents;
  const zarr::LevelSize grid = zarr::ShardGridOf(slide.store, {parent.height, parent.width});
  for (std::int64_t row = 2 * place.row; row < std::min(2 * place.row + 2, grid.height); ++row) {
    for (std::int64_t column = 2 * place.column;
         column < std::min(2 * place.column + 2, grid.width); ++column) {
      parents.push_back(protocol::kSpawnedBase +
                        first_of_level[static_cast<std::size_t>(place.level) - 1] +
                        static_cast<std::uint32_t>(row * grid.width + column));
    }
  }
  return parents;
}

std::uint64_t PixelsOf(const IngestSlide& slide, const zarr::ShardPlace& place) {
  const OutputLevel& level =
      slide.levels[static_cast<std::size_t>(LevelOfStored(slide.levels, place.level))];
  const std::int64_t side = slide.store.shard_px;
  return static_cast<std::uint64_t>(std::min(side, level.height - place.row * side) *
                                    std::min(side, level.width - place.column * side));
}

std::vector<protocol::TaskSpec> TasksFor(const IngestSlide& slide, const std::string& slide_key,
                                         const std::vector<zarr::ShardPlace>& places) {
  std::vector<protocol::TaskSpec> tasks;
  protocol::TaskSpec finalise;
  const Json names = {
      {"job_key", slide.folders.job_key}, {"slide", slide.index}, {"slide_key", slide_key}};
  std::vector<std::uint32_t> first_of_level;
  for (const zarr::ShardPlace& place : places) {
    if (place.level == static_cast<int>(first_of_level.size())) {
      first_of_level.push_back(static_cast<std::uint32_t>(tasks.size()));
    }
    protocol::TaskSpec task;
    Json payload = names;
    payload["level"] = place.level;
    payload["row"] = place.row;
    payload["column"] = place.column;
    task.op = "ingest.shard";
    task.payload = DumpJson(payload);
    task.depends_on = ParentsOf(slide, first_of_level, place);
    task.group = static_cast<std::uint32_t>(slide.index) + 1;
    task.label = StrCat("slide ", slide.index, " level ", place.level, " shard ", place.row, ",",
                        place.column);
    task.weight = PixelsOf(slide, place);
    finalise.depends_on.push_back(protocol::kSpawnedBase +
                                  static_cast<std::uint32_t>(tasks.size()));
    tasks.push_back(std::move(task));
  }
  finalise.op = "ingest.finalise";
  finalise.payload = DumpJson(names);
  finalise.group = static_cast<std::uint32_t>(slide.index) + 1;
  finalise.label = StrCat("slide ", slide.index, " finalise");
  tasks.push_back(std::move(finalise));
  return tasks;
}

/// The staging folder with the metadata that lets a level be read while the next is built from it.
Status PrepareStaging(const IngestSlide& slide, const std::string& slide_key,
                      const zarr::ImageStoreSpec& spec) {
  PB_RETURN_IF_ERROR(MakeDirectories(StrCat(slide.folders.Staging(slide_key), "/records"), 0700));
  PB_RETURN_IF_ERROR(MakeDirectories(slide.folders.Store(slide_key)));
  return zarr::WriteStoreMetadata(slide.folders.Store(slide_key), spec, zarr::StoreRoots{});
}

StatusOr<TaskOutput> OpenSlide(TaskContext& context) {
  PB_ASSIGN_OR_RETURN(const IngestSlide slide, OpenIngestSlide(context));
  context.AddProgress();
  PB_ASSIGN_OR_RETURN(const Digest source, DigestCache(context.state_folder).DigestOf(slide.path));
  context.AddProgress();
  struct stat st {};
  if (stat(slide.path.c_str(), &st) != 0) return FromErrno("stat", slide.path, errno);
  SlideOutcome outcome;
  outcome.slide_key = SlideKey(source, slide.manifest.settings);
  outcome.source_sha256 = source.Hex();
  outcome.source_bytes = static_cast<std::uint64_t>(st.st_size);
  PB_ASSIGN_OR_RETURN(const std::string name, StoreName(slide.manifest, slide.path, source));
  const std::vector<zarr::ShardPlace> places = ShardPlaces(slide);
  if (places.size() > kMaxShardTasks) {
    return absl::InvalidArgumentError(StrCat("ingest: slide ", slide.index, ": ", places.size(),
                                             " zarr shards, more than ", kMaxShardTasks,
                                             " (use a larger --shard)"));
  }
  TaskOutput output;
  PB_ASSIGN_OR_RETURN(const bool there,
                      AdoptFinishedStore(slide.folders, name, slide.manifest.settings, outcome));
  PB_RETURN_IF_ERROR(SaveOutcome(slide.folders, slide.index, outcome));
  if (!there) {
    const zarr::ImageStoreSpec spec = StoreSpec(slide, source, outcome.source_bytes);
    PB_RETURN_IF_ERROR(PrepareStaging(slide, outcome.slide_key, spec));
    output.spawned = TasksFor(slide, outcome.slide_key, places);
  }
  output.result = DumpJson({{"slide", slide.index},
                            {"levels", StoredSizes(slide.levels).size()},
                            {"shards", there ? 0 : places.size()}});
  return output;
}

}  // namespace

StatusOr<TaskOutput> RunIngestOpen(TaskContext& context) {
  return WithoutPaths(context, OpenSlide(context));
}

}  // namespace patchbay::workers
