// Opens one slide: reads its layout, adopts an existing store, or spawns the tasks of its shards.
#include <algorithm>
#include <map>
#include <set>

#include "runtime/core/strings.h"
#include "runtime/format/zarr/inspect.h"
#include "workers/jobs/ingest/check.h"
#include "workers/jobs/ingest/ingest.h"
#include "workers/jobs/ingest/ingest_publish.h"
#include "workers/jobs/ingest/ingest_slide.h"
#include "workers/jobs/ingest/ingest_volume.h"
#include "workers/jobs/ingest/shard_memory.h"
#include "workers/jobs/ingest/tile_source.h"
#include "workers/jobs/task/folder_tree.h"

namespace patchbay::workers {
namespace {

constexpr std::size_t kMaxShardTasks = 15'000;
/// Larger means fewer tasks, which each open the slide, and more of it waiting for one worker at
/// its end.
constexpr std::size_t kShardsPerJoin = 4, kShardsPerCopy = 8;
/// How much longer it takes to make shards than to read them back (measured: about 5).
constexpr std::uint64_t kMakingPerChecking = 5;
static_assert(std::max(kShardsPerJoin, kShardsPerCopy) <= kShardsPerCheck);

/// Shards that must be committed before this one can be made: those that it covers in the finest
/// level of its column. A shard of that finest level needs the up to four shards that it averages,
/// or none if its level is from the source.
std::vector<zarr::ShardPlace> ParentsOf(const IngestSlide& slide, const zarr::ShardPlace& place) {
  const LevelColumn column = ColumnOf(slide, place.level);
  if (place.level != column.finest) return FinestBelow(slide, column, place);
  const OutputLevel& level =
      slide.levels[static_cast<std::size_t>(LevelOfStored(slide.levels, place.level))];
  if (level.from_source) return {};
  const OutputLevel& parent = slide.levels[static_cast<std::size_t>(level.parent)];
  if (!parent.stored) return {};
  const LevelColumn both{place.level - 1, {parent.size, level.size}};
  return FinestBelow(slide, both, place);
}

/// The weight of a shard in pixels that are encoded with it; almost none for a shard that only
/// joins chunks encoded before.
std::uint64_t WeightOf(const IngestSlide& slide, const zarr::ShardPlace& place) {
  const LevelColumn column = ColumnOf(slide, place.level);
  const Extent level = column.sizes[static_cast<std::size_t>(place.level - column.finest)];
  const Extent& shard = slide.store.shard;
  const Box box = Intersect(Box2D(place.at.y * shard.y, place.at.x * shard.x, shard.y, shard.x),
                            WholeOf(level));
  const auto pixels = static_cast<std::uint64_t>(box.Pixels());
  if (place.level != column.finest) return pixels / 32 + 1;
  std::uint64_t weight = 0;
  for (std::size_t i = 0; i < column.sizes.size(); ++i) weight += pixels >> (2 * i);
  return weight;
}

/// Whether the tiles of a level are copied as they are, which waits for disks most of the time.
bool CopiesTiles(const IngestSlide& slide, int level) {
  return ColumnOf(slide, level).finest == level && slide.settings.KeepsTiles() &&
         slide.settings.no_statistics;
}

/// How many shards from `first` on go into one task: one where pixels are decoded or encoded; some,
/// of one level, where encoded chunks are joined or tiles copied.
std::size_t CountTogether(const IngestSlide& slide, const std::vector<zarr::ShardPlace>& places,
                          std::size_t first) {
  const int level = places[first].level;
  const bool joins = ColumnOf(slide, level).finest != level;
  if (!joins && !CopiesTiles(slide, level)) return 1;
  const std::size_t most = joins ? kShardsPerJoin : kShardsPerCopy;
  std::size_t count = 1;
  while (count < most && first + count < places.size() && places[first + count].level == level) {
    ++count;
  }
  return count;
}

/// Collects the tasks of a slide; a task depends only on earlier ones.
class TasksOfSlide {
 public:
  TasksOfSlide(const IngestSlide& slide, const std::vector<zarr::ShardPlace>& places)
      : slide_(slide),
        places_(places),
        memory_bytes_(ShardTaskMemoryBytes(slide.store, OwnMemoryLimit())) {}

  /// The tasks of all shards, in the order of places, each check after its shards, the finalise.
  std::vector<protocol::TaskSpec> All() {
    for (std::size_t first = 0; first < places_.size();) {
      const std::size_t count = CountTogether(slide_, places_, first);
      if (first + count - unchecked_ > kShardsPerCheck) AddCheck(first);
      makers_.push_back(AddShards(first, count));
      first += count;
    }
    AddCheck(places_.size());
    protocol::TaskSpec finalise = slide_.Part("ingest.finalise", "finalise");
    finalise.depends_on = std::move(checks_);
    finalise.resources.cpu_millis = kEndingCpuMillis;
    Add(std::move(finalise));
    return std::move(tasks_);
  }

 private:
  std::uint32_t Add(protocol::TaskSpec task) {
    tasks_.push_back(std::move(task));
    return protocol::kSpawnedBase + static_cast<std::uint32_t>(tasks_.size() - 1);
  }

  Json PayloadOf(std::size_t first, std::size_t count) const {
    return JsonOf(ShardPayload{slide_.slide_key, static_cast<std::int64_t>(first),
                               static_cast<std::int64_t>(count)});
  }

  std::uint32_t AddShards(std::size_t first, std::size_t count) {
    const zarr::ShardPlace& place = places_[first];
    const bool joins = ColumnOf(slide_, place.level).finest != place.level;
    protocol::TaskSpec task = slide_.Part(joins ? "ingest.join" : "ingest.shard",
                                          StrCat("level ", place.level, " shard ", place.at.y, ",",
                                                 place.at.x, count > 1 ? " and on" : ""),
                                          PayloadOf(first, count));
    if (joins || CopiesTiles(slide_, place.level)) task.resources.cpu_millis = kEndingCpuMillis;
    task.resources.memory_bytes = memory_bytes_;
    std::set<std::uint32_t> parents;
    task.weight = 0;
    for (std::size_t i = first; i < first + count; ++i) {
      for (const zarr::ShardPlace& parent : ParentsOf(slide_, places_[i])) {
        parents.insert(task_of_.at(RecordName(parent)));
      }
      task.weight += WeightOf(slide_, places_[i]);
    }
    unchecked_weight_ += task.weight;
    task.depends_on.assign(parents.begin(), parents.end());
    const std::uint32_t number = Add(std::move(task));
    for (std::size_t i = first; i < first + count; ++i) task_of_[RecordName(places_[i])] = number;
    return number;
  }

  /// Adds the check of the shards before `end` that have no check yet.
  void AddCheck(std::size_t end) {
    protocol::TaskSpec check =
        slide_.Part("ingest.check", StrCat("check of shards ", unchecked_, " to ", end - 1),
                    PayloadOf(unchecked_, end - unchecked_));
    check.resources.cpu_millis = kEndingCpuMillis;
    check.weight = std::max<std::uint64_t>(1, unchecked_weight_ / kMakingPerChecking);
    unchecked_weight_ = 0;
    check.depends_on = std::move(makers_);
    makers_.clear();
    unchecked_ = end;
    checks_.push_back(Add(std::move(check)));
  }

  const IngestSlide& slide_;
  const std::vector<zarr::ShardPlace>& places_;
  const std::uint64_t memory_bytes_;
  std::vector<protocol::TaskSpec> tasks_;
  std::map<std::string, std::uint32_t> task_of_;  ///< by the shard's name
  std::size_t unchecked_ = 0;                     ///< the first shard no check has been added for
  std::uint64_t unchecked_weight_ = 0;            ///< weight of the shards from there on
  std::vector<std::uint32_t> makers_;             ///< the tasks of these
  std::vector<std::uint32_t> checks_;
};

/// The staging folder with the metadata that lets a level be read while the next is built from it.
/// Existing metadata is kept: another slide with this content may be about to publish it.
Status PrepareStaging(TaskContext& context, const IngestSlide& slide,
                      const zarr::ImageStoreSpec& spec) {
  for (const char* below : {"records", "colours", "pieces"}) {
    PB_RETURN_IF_ERROR(MakeDirectories(context.allowed, StrCat(slide.Staging(), "/", below), 0700));
  }
  PB_RETURN_IF_ERROR(MakeDirectories(context.allowed, slide.Store()));
  PB_ASSIGN_OR_RETURN(const auto lock, StagingLock::Take(context, slide));
  if (zarr::InspectStore(context.allowed, slide.Store()).ok()) return absl::OkStatus();
  return zarr::DraftStoreMetadata(context.allowed, slide.Store(), spec, zarr::StoreRoots{});
}

StatusOr<TaskOutput> OpenSlide(TaskContext& context) {
  PB_ASSIGN_OR_RETURN(IngestSlide slide, OpenIngestSlide(context));
  context.AddProgress();
  PB_RETURN_IF_ERROR(CheckShardFits(slide, OwnMemoryLimit()));
  PB_ASSIGN_OR_RETURN(const Digest source, SourceDigest(context, slide, slide.path));
  PB_ASSIGN_OR_RETURN(const std::string name, StoreName(slide, slide.path, source));
  const std::vector<zarr::ShardPlace> places = ShardPlaces(slide);
  if (places.size() > kMaxShardTasks) {
    return slide.Error(absl::StatusCode::kInvalidArgument,
                       StrCat(places.size(), " zarr shards, more than ", kMaxShardTasks),
                       "use a larger --shard");
  }
  const std::uint64_t source_bytes = SourceBytes(context, slide, slide.path);
  PB_ASSIGN_OR_RETURN(OpenedSource opened, OpenSource(context, slide, name, source, source_bytes));
  if (!opened.there) {
    const Status prepared = PrepareStaging(context, slide, StoreSpec(slide, source, source_bytes));
    if (!prepared.ok()) {  // perhaps because a copy of the slide was just finished
      PB_ASSIGN_OR_RETURN(opened, OpenSource(context, slide, name, source, source_bytes));
      if (!opened.there) return prepared;
    }
  }
  TaskOutput output;
  if (opened.there) {
    AddTissueTask(slide, name, output);
  } else {
    output.spawned = TasksOfSlide(slide, places).All();
  }
  output.result = DumpJson({{"slide", slide.slide},
                            {"levels", StoredSizes(slide.levels).size()},
                            {"shards", opened.there ? 0 : places.size()}});
  return output;
}

}  // namespace

StatusOr<TaskOutput> RunIngestOpen(TaskContext& context) {
  PB_ASSIGN_OR_RETURN(IngestTask task, OpenIngestTask(context));
  PB_ASSIGN_OR_RETURN(const auto volume, PlannedImageOf(context, task));
  if (volume && task.settings.KeepsTiles()) return CannotKeep(task, "a volume has no tiles");
  return volume ? OpenVolume(context, task, *volume) : OpenSlide(context);
}

}  // namespace patchbay::workers
