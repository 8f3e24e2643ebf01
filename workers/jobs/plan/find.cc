// The root task of a stream.
#include <algorithm>
#include <utility>
#include <vector>

#include "runtime/core/strings.h"
#include "runtime/model/ops/stain_references.h"
#include "runtime/model/plan/image_colours.h"
#include "runtime/model/plan/places.h"
#include "workers/jobs/plan/open_request.h"
#include "workers/jobs/plan/plan_tasks.h"
#include "workers/jobs/plan/table_rows.h"

namespace patchbay::workers {
namespace {

constexpr std::size_t kLeastImagesPerTask = 8;
constexpr std::size_t kMostTasks = 512;
constexpr std::size_t kLeastTasks = 32;  ///< tasks, if there are enough images
/// The most bytes of lists sent to all tasks, each of which gets and parses the whole list: larger
/// means more tasks, and more overhead.
constexpr std::size_t kMostListBytesSent = std::size_t{40} << 20;

OpenRequest RequestOf(const plan::RunConfig& config) {
  OpenRequest request;
  request.level = config.level;
  request.channels = config.channels;
  request.label_sets = config.labels.Sets();
  request.on_bad_image = config.on_bad_image;
  if (plan::NeedsPlaces(config)) request.config = plan::ToJson(config);
  if (!config.mpp.empty()) request.magnification = plan::MagnificationOf(config);
  if (config.spacing) request.spacing = plan::WantedSpacingOf(config);
  if (const plan::FoundOp stain = plan::FindStainOp(config)) {
    request.stain = stain.key;
    request.stain_options = *stain.options;
  }
  request.icc = static_cast<bool>(plan::FindIccOp(config));
  request.volume = plan::VolumeNeedsOf(config);
  return request;
}

std::vector<protocol::TaskSpec> TasksOf(const TaskContext& context, const PlanRequest& request,
                                        std::size_t images, std::size_t list_bytes) {
  std::vector<protocol::TaskSpec> tasks;
  const std::size_t groups = OpeningTasks(images, list_bytes);
  OpenRequest opens = RequestOf(request.config);
  protocol::TaskSpec join;
  join.op = "stream.join";
  join.payload = DumpJson(context.payload);
  join.label = "plan";
  join.depends_on = {context.task.index};
  for (std::size_t group = 0; group < groups; ++group) {
    opens.first = images * group / groups;
    opens.count = images * (group + 1) / groups - opens.first;
    protocol::TaskSpec open;
    open.op = "stream.open";
    open.payload = DumpJson(JsonOf(opens));
    open.depends_on = {context.task.index};
    open.label = StrCat("images ", opens.first, " to ", opens.first + opens.count - 1);
    open.weight = opens.count;
    join.depends_on.push_back(protocol::kSpawnedBase + static_cast<std::uint32_t>(group));
    tasks.push_back(std::move(open));
  }
  tasks.push_back(std::move(join));
  return tasks;
}

Status TooManyPaths(std::size_t images, std::size_t bytes) {
  return ResourceExhausted("plan stream: the paths of ", images, " images take ", HumanBytes(bytes),
                           ", more than the limit of ", HumanBytes(protocol::kMaxResultBytes),
                           ": split the dataset, or shorten the paths below their common folder");
}

}  // namespace

std::size_t OpeningTasks(std::size_t images, std::size_t list_bytes) {
  const std::size_t wanted = (images + kLeastImagesPerTask - 1) / kLeastImagesPerTask;
  const std::size_t sent = std::max(kLeastTasks, kMostListBytesSent / (list_bytes + 1));
  return std::min({wanted, kMostTasks, sent});
}

StatusOr<TaskOutput> RunStreamPlan(TaskContext& context) {
  PB_ASSIGN_OR_RETURN(const PlanRequest request, ParsePlanRequest(context.ops, context.payload));
  TaskOutput output;
  PB_ASSIGN_OR_RETURN(const ImageList list, ListImages(context));
  output.result = DumpJson(JsonOf(list));
  if (output.result.size() > protocol::kMaxResultBytes) {
    return TooManyPaths(list.images.size(), output.result.size());
  }
  output.spawned = TasksOf(context, request, list.images.size(), output.result.size());
  return output;
}

}  // namespace patchbay::workers
