// The root task of a stream.
#include <algorithm>
#include <utility>
#include <vector>

#include "runtime/core/strings.h"
#include "runtime/model/ops/icc_to_srgb.h"
#include "runtime/model/ops/op_key.h"
#include "runtime/model/ops/stain_normalize.h"
#include "runtime/model/plan/image_volumes.h"
#include "runtime/model/plan/places.h"
#include "workers/access/planned_images.h"
#include "workers/jobs/plan/plan_request.h"
#include "workers/jobs/plan/stream_plan.h"
#include "workers/jobs/plan/table_rows.h"
#include "workers/jobs/task/find_images.h"

namespace patchbay::workers {
namespace {

constexpr std::size_t kLeastImagesPerTask = 8;
constexpr std::size_t kMostTasks = 512;
constexpr std::size_t kLeastTasks = 32;  ///< of those that many images allow
/// Every task is sent the list and reads it: larger means more tasks, and more time beside the
/// work.
constexpr std::size_t kMostListBytesSent = std::size_t{128} << 20;

std::string OpenPayload(const plan::RunConfig& config, std::size_t first, std::size_t count) {
  Json payload = {{"first", first},
                  {"count", count},
                  {"level", config.level},
                  {"label_set", config.labels.set},
                  {"on_bad_image", plan::NameOf(config.on_bad_image)}};
  if (plan::NeedsPlaces(config)) payload["config"] = plan::ToJson(config);
  if (!config.mpp.empty()) payload["magnification"] = plan::ToJson(plan::MagnificationOf(config));
  if (config.spacing) payload["spacing"] = plan::ToJson(plan::WantedSpacingOf(config));
  const std::string stain = plan::KeyOfOp(config.preprocess, config.augment, plan::kStainNormalize);
  if (!stain.empty()) payload["stain"] = stain;
  if (plan::FindIccToSrgb(config.preprocess, config.augment)) payload["icc"] = true;
  const plan::VolumeNeeds volume = plan::VolumeNeedsOf(config);
  if (volume.Any()) payload["volume"] = plan::ToJson(volume);
  return DumpJson(payload);
}

std::vector<protocol::TaskSpec> TasksOf(const TaskContext& context, const PlanRequest& request,
                                        std::size_t images, std::size_t list_bytes) {
  std::vector<protocol::TaskSpec> tasks;
  const std::size_t groups = OpeningTasks(images, list_bytes);
  protocol::TaskSpec join;
  join.op = "stream.join";
  join.payload = DumpJson(context.payload);
  join.label = "plan";
  join.depends_on = {context.task.index};
  for (std::size_t group = 0; group < groups; ++group) {
    const std::size_t first = images * group / groups;
    const std::size_t count = images * (group + 1) / groups - first;
    protocol::TaskSpec open;
    open.op = "stream.open";
    open.payload = OpenPayload(request.config, first, count);
    open.depends_on = {context.task.index};
    open.label = StrCat("images ", first, " to ", first + count - 1);
    open.weight = count;
    join.depends_on.push_back(protocol::kSpawnedBase + static_cast<std::uint32_t>(group));
    tasks.push_back(std::move(open));
  }
  tasks.push_back(std::move(join));
  return tasks;
}

Status TooManyPaths(std::size_t images, std::size_t bytes) {
  return absl::ResourceExhaustedError(
      StrCat("plan stream: the paths of ", images, " images take ", HumanBytes(bytes),
             ", more than the ", HumanBytes(protocol::kMaxResultBytes),
             " that travel: split the dataset, or shorten the paths below their common folder"));
}

}  // namespace

std::size_t OpeningTasks(std::size_t images, std::size_t list_bytes) {
  const std::size_t wanted = (images + kLeastImagesPerTask - 1) / kLeastImagesPerTask;
  const std::size_t sent = std::max(kLeastTasks, kMostListBytesSent / (list_bytes + 1));
  return std::min({wanted, kMostTasks, sent});
}

StatusOr<TaskOutput> RunStreamPlan(TaskContext& context) {
  PB_ASSIGN_OR_RETURN(const PlanRequest request, ParsePlanRequest(context.payload));
  TaskOutput output;
  std::vector<std::string> paths;
  if (IsTable(context.manifest)) {
    ListedRows rows;
    PB_ASSIGN_OR_RETURN(paths, ListRows(context, rows));
    Json list = PathsToJson(paths);
    list["table"] = ToJson(rows);
    output.result = DumpJson(list);
  } else {
    PB_ASSIGN_OR_RETURN(const std::vector<std::string> named,
                        ManifestPaths(context.manifest, "images"));
    FilesByKind passed_over;
    PB_ASSIGN_OR_RETURN(
        paths, FindImages(context, named, {.keep_unreadable = true, .passed_over = &passed_over}));
    Json list = PathsToJson(paths);
    list["passed_over"] = std::move(passed_over);
    output.result = DumpJson(list);
  }
  if (output.result.size() > protocol::kMaxResultBytes) {
    return TooManyPaths(paths.size(), output.result.size());
  }
  output.spawned = TasksOf(context, request, paths.size(), output.result.size());
  return output;
}

}  // namespace patchbay::workers
