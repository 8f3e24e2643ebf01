// The tasks of one store: its parts, on all workers, and what puts them together.
#include "workers/jobs/convert/convert_store.h"

#include <algorithm>
#include <filesystem>

#include "runtime/core/outcome.h"
#include "runtime/core/strings.h"
#include "runtime/format/json/described.h"
#include "runtime/format/zarr/file_byte_store.h"
#include "runtime/format/zarr/label_sets.h"
#include "runtime/format/zarr/publish.h"
#include "runtime/format/zarr/shard_list.h"
#include "runtime/format/zarr/store_root.h"
#include "runtime/model/results/ingest_summary.h"
#include "runtime/os/available_memory.h"
#include "runtime/os/file.h"
#include "runtime/os/file_names.h"
#include "runtime/os/folder_listing.h"
#include "workers/jobs/convert/conversion.h"
#include "workers/jobs/task/folder_tree.h"
#include "workers/sources/tiff_index.h"

namespace patchbay::workers {
namespace {

/// Pixels that a task makes at least, where there are more parts.
constexpr std::int64_t kTaskPixels = std::int64_t{1} << 24;
constexpr std::int64_t kMaxTasks = 4096;  ///< tasks of one store
constexpr std::size_t kMaxRecordBytes = std::size_t{1} << 31;

struct PartsPayload {
  std::int64_t first = 0, count = 0;  ///< in the order of PartsOf

  static constexpr auto Fields() {
    return AsObject(Field("first", &PartsPayload::first).Required(),
                    Field("count", &PartsPayload::count).Required());
  }
};

/// Files that the store lists and that are gone, or other ones, are DataLoss from now on.
Status ExpectItsFiles(zarr::OpenedStore& store) {
  std::vector<zarr::Array> arrays;
  for (zarr::OpenedLevel& level : store.levels) arrays.push_back(std::move(level.array));
  const Status expected =
      zarr::ExpectListedFiles(store.documents["zarr.json"]["attributes"], arrays);
  for (std::size_t l = 0; l < arrays.size(); ++l) store.levels[l].array = std::move(arrays[l]);
  return expected;
}

StatusOr<Conversion> OpenConversion(TaskContext& context, const ConvertTask& task) {
  Conversion from;
  from.options = task.options;
  PB_ASSIGN_OR_RETURN(from.path, context.MayRead(task.Source()));
  PB_ASSIGN_OR_RETURN(from.store, zarr::OpenStore(context.allowed, from.path));
  PB_RETURN_IF_ERROR(StepOf(context));
  from.attributes = zarr::OwnAttributes(context.allowed, from.path);
  if (!from.store.faults.empty() || !from.store.recorded) {
    return ErrorAbout(absl::StatusCode::kDataLoss, "convert", from.path,
                      from.store.faults.empty() ? "it has no digests" : from.store.faults.front());
  }
  PB_RETURN_IF_ERROR(ExpectItsFiles(from.store));
  PB_ASSIGN_OR_RETURN(const auto image, OpenImage(context.allowed, from.path));
  PB_RETURN_IF_ERROR(StepOf(context));
  from.layout = image->layout();
  from.staging = task.folders.InJob(
      StrCat("staging/", task.slide, "-", from.store.recorded->bytes.Hex().substr(0, 16)));
  PB_RETURN_IF_ERROR(TargetOf(task.options).check(from));
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
  } else if (from.options.MakesFolder()) {
    is_same = zarr::OwnAttributes(context.allowed, target) == PlanarMarkOf(from);
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

/// Two and a half times the pixels of a part, and what codecs take; never more than this node lets
/// a task use.
std::uint64_t TaskMemoryBytes(const Conversion& from) {
  constexpr std::uint64_t kBeside = std::uint64_t{96} << 20;
  auto* const part = TargetOf(from.options).part;
  const zarr::ImageStoreSettings& store = from.store.settings;
  const Extent side = part == nullptr ? store.shard : part(from);
  const Box box = Intersect(WholeOf(side), WholeOf(from.store.levels.front().size));
  const auto raw =
      static_cast<std::uint64_t>(std::max(box.Pixels(), store.shard.Pixels()) * store.PixelBytes());
  return std::min(raw / 2 * 5 + kBeside, OwnMemoryLimit().bytes / 100 * kMemoryUsePercent);
}

/// Tasks for runs of parts that are not large.
void AddParts(const ConvertTask& task, const Conversion& from, TaskOutput& output) {
  const std::vector<zarr::ShardPlace> parts = PartsOf(from);
  std::int64_t all = 0;
  for (const zarr::ShardPlace& part : parts) all += BoxOf(from, part).Pixels();
  const std::int64_t enough = std::max(kTaskPixels, all / kMaxTasks);
  const auto end = static_cast<std::int64_t>(parts.size());
  for (std::int64_t first = 0, last = 0; first < end; first = last) {
    std::int64_t pixels = 0;
    while (last < end && pixels < enough) {
      pixels += BoxOf(from, parts[static_cast<std::size_t>(last++)]).Pixels();
    }
    protocol::TaskSpec make = task.Part("convert.part", StrCat("part ", first),
                                        JsonOf(PartsPayload{first, last - first}));
    make.weight = static_cast<std::uint64_t>(pixels * from.store.settings.PixelBytes());
    make.resources.memory_bytes = TaskMemoryBytes(from);
    output.spawned.push_back(std::move(make));
  }
}

Status MakeOne(TaskContext& context, const Conversion& from, const zarr::ShardPlace& part) {
  if (Exists(context.allowed, from.Record(part), false)) return absl::OkStatus();
  PB_ASSIGN_OR_RETURN(const auto lease, LeaseFolder::Make(context, from.staging));
  PB_ASSIGN_OR_RETURN(const std::string record,
                      TargetOf(from.options).make(context, from, part, *lease));
  PB_RETURN_IF_ERROR(lease->Put(context, from.Record(part), AsBytes(record), 0600));
  return SyncDirectory(context.allowed, StrCat(from.staging, "/parts"));
}

/// By one rename: a killed task leaves nothing of that name.
Status Publish(TaskContext& context, const Conversion& from, const std::string& target) {
  PB_RETURN_IF_ERROR(MakeDirectories(context.allowed, from.staging, 0700));
  PB_RETURN_IF_ERROR(TargetOf(from.options).finish(context, from));
  PB_RETURN_IF_ERROR(ShareFiles(context.allowed, from.Made(), context.sharing));
  if (from.options.MakesFolder()) {
    return zarr::PublishStore(context.allowed, from.Made(), target, [&] { context.AddProgress(); });
  }
  PB_RETURN_IF_ERROR(RenameUnlessTaken(context.allowed, from.Made(), target));
  return SyncDirectory(context.allowed, std::filesystem::path(target).parent_path().string());
}

StatusOr<results::IngestedStore> RowOf(TaskContext& context, const ConvertTask& task,
                                       const Conversion& from, const std::string& target) {
  results::IngestedStore row;
  row.name = std::filesystem::path(target).filename().string();
  row.source_index = task.slide;
  row.source_bytes = BytesOfStore(context, from.path);
  row.digest = from.store.recorded->bytes.Hex();
  row.pixel_digest = from.store.recorded->pixels.Hex();
  if (!task.options.MakesFolder()) {
    PB_ASSIGN_OR_RETURN(row.stored_bytes, SizeOf(context.allowed, target));
    return row;
  }
  row.stored_bytes = BytesOfStore(context, target);
  if (!task.options.MakesStore()) return row;
  const Json made = zarr::OwnAttributes(context.allowed, target);
  row.digest = made.value("digest", "");
  row.pixel_digest = made.value("pixel_digest", "");
  return row;
}

}  // namespace

StatusOr<ConvertTask> OpenConvertTask(TaskContext& context, const StagedJob& job) {
  ConvertTask task(context.allowed);
  PB_RETURN_IF_ERROR(OpenStagedJob(context, job, task));
  PB_ASSIGN_OR_RETURN(task.options,
                      ReadPayload<ConvertOptions>(task.manifest.settings, "convert settings"));
  return task;
}

StatusOr<TaskOutput> OpenStoreOf(TaskContext& context, const ConvertTask& task) {
  PB_ASSIGN_OR_RETURN(const Conversion from, OpenConversion(context, task));
  PB_ASSIGN_OR_RETURN(const bool is_there, IsThere(context, from, task.Target(from.path)));
  TaskOutput output;
  if (!is_there) {
    PB_RETURN_IF_ERROR(MakeDirectories(context.allowed, StrCat(from.staging, "/parts"), 0700));
    AddParts(task, from, output);
  }
  protocol::TaskSpec make = task.Part("convert.store", task.options.to);
  for (std::uint32_t i = 0; i < output.spawned.size(); ++i) {
    make.depends_on.push_back(protocol::kSpawnedBase + i);
  }
  make.weight = std::max<std::uint64_t>(1, BytesOfStore(context, from.path));
  make.resources.memory_bytes = TaskMemoryBytes(from);
  if (!make.depends_on.empty()) make.resources.cpu_millis = kEndingCpuMillis;
  output.spawned.push_back(std::move(make));
  return output;
}

StatusOr<TaskOutput> MakePartsOf(TaskContext& context, const ConvertTask& task) {
  PB_ASSIGN_OR_RETURN(const auto payload,
                      FromJson<PartsPayload>(context.payload, "parts", UnknownKeys::kSkipped));
  PB_ASSIGN_OR_RETURN(const Conversion from, OpenConversion(context, task));
  const std::vector<zarr::ShardPlace> parts = PartsOf(from);
  const auto end = static_cast<std::int64_t>(parts.size());
  if (payload.first < 0 || payload.count < 1 || payload.first > end - payload.count) {
    return InvalidArgument("convert: parts ", payload.first, "+", payload.count, " of ", end);
  }
  TaskOutput output;
  for (std::int64_t i = payload.first; i < payload.first + payload.count; ++i) {
    const zarr::ShardPlace& part = parts[static_cast<std::size_t>(i)];
    const Status made = MakeOne(context, from, part);
    if (!made.ok()) {  // another run of the same command may have been first
      return IsThere(context, from, task.Target(from.path)).value_or(false)
                 ? output
                 : StatusOr<TaskOutput>(made);
    }
    output.progress_bytes +=
        static_cast<std::uint64_t>(BoxOf(from, part).Pixels() * from.store.settings.PixelBytes());
  }
  return output;
}

StatusOr<TaskOutput> FinishStoreOf(TaskContext& context, const ConvertTask& task) {
  PB_ASSIGN_OR_RETURN(const Conversion from, OpenConversion(context, task));
  const std::string target = task.Target(from.path);
  PB_ASSIGN_OR_RETURN(const bool was_there, IsThere(context, from, target));
  if (!was_there) {
    const Status published = Publish(context, from, target);
    // A task that lost its lease may have been first.
    if (!published.ok() && !IsThere(context, from, target).value_or(false)) return published;
  }
  RemoveTree(context, from.staging).IgnoreError();
  PB_ASSIGN_OR_RETURN(results::IngestedStore row, RowOf(context, task, from, target));
  row.already_there = was_there;
  TaskOutput output;
  output.result = DumpJson(JsonOf(row));
  if (PartsOf(from).empty()) output.progress_bytes = row.source_bytes;
  PB_RETURN_IF_ERROR(
      WriteFileDurably(context.allowed, task.OutcomeFile(), AsBytes(output.result), 0600));
  return output;
}

std::vector<zarr::ShardPlace> PartsOf(const Conversion& from) {
  std::vector<zarr::ShardPlace> parts;
  auto* const part = TargetOf(from.options).part;
  const Extent side = part == nullptr ? Extent{} : part(from);
  if (side.Empty()) return parts;
  for (std::size_t l = 0; l < from.store.levels.size(); ++l) {
    const Extent grid = CellsOf(from.store.levels[l].size, side);
    const zarr::ImageStoreSettings& store = from.store.settings;
    const bool has_channels = store.axes == zarr::StoreAxes::kCzyx;
    for (int channel = 0; channel < store.Planes(); ++channel) {
      for (std::int64_t i = 0; i < grid.Pixels(); ++i) {
        parts.push_back({static_cast<int>(l), CellAt(grid, i), has_channels ? channel : -1});
      }
    }
  }
  return parts;
}

Box BoxOf(const Conversion& from, const zarr::ShardPlace& part) {
  const Extent side = TargetOf(from.options).part(from);
  return Intersect(BoxAt({part.at.z * side.z, part.at.y * side.y, part.at.x * side.x}, side),
                   WholeOf(from.store.At(part).size));
}

StatusOr<std::string> ReadRecord(TaskContext& context, const Conversion& from,
                                 const zarr::ShardPlace& part) {
  PB_RETURN_IF_ERROR(StepOf(context));
  return ReadFile(context.allowed, from.Record(part), kMaxRecordBytes);
}

Status CannotConvert(const Conversion& from, std::string_view cause) {
  return ErrorAbout(absl::StatusCode::kUnimplemented, "convert", from.path,
                    StrCat("--to ", from.options.to, ": ", cause));
}

}  // namespace patchbay::workers
