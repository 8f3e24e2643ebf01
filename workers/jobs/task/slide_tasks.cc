#include "workers/jobs/task/slide_tasks.h"

#include <utility>

#include "runtime/core/strings.h"
#include "runtime/format/json/json.h"

namespace patchbay::workers {

std::vector<protocol::TaskSpec> SlideTasks(std::string_view job, const std::string& job_key,
                                           std::size_t slides) {
  std::vector<protocol::TaskSpec> tasks;
  for (std::size_t i = 0; i < slides; ++i) {
    protocol::TaskSpec open;
    open.op = StrCat(job, ".open");
    open.payload = DumpJson({{"job_key", job_key}, {"slide", i}});
    open.group = static_cast<std::uint32_t>(i) + 1;
    open.label = StrCat("slide ", i);
    tasks.push_back(std::move(open));
  }
  protocol::TaskSpec summary;
  summary.op = StrCat(job, ".summary");
  summary.payload = DumpJson({{"job_key", job_key}});
  summary.after_failures = true;
  summary.label = "summary";
  tasks.push_back(std::move(summary));
  return tasks;
}

TaskOutput PlannedSlides(const SlideJobFolders& folders, std::size_t slides, const Json& more) {
  Json result = {{"job_key", folders.job_key}, {"slides", slides}, {"summary_task", slides + 1}};
  result.update(more);
  TaskOutput output;
  output.spawned = SlideTasks(folders.job, folders.job_key, slides);
  output.result = DumpJson(result);
  return output;
}

TaskOutput Summarised(const SlideJobFolders& folders, std::string result, bool is_whole) {
  TaskOutput output;
  output.result = std::move(result);
  if (!is_whole) {
    LeaveJobFolder(folders);
    return output;
  }
  protocol::TaskSpec clean;
  clean.op = StrCat(folders.job, ".clean");
  clean.payload = DumpJson({{"job_key", folders.job_key}});
  clean.label = "clean";
  output.spawned.push_back(std::move(clean));
  return output;
}

StatusOr<TaskOutput> CleanSlideJob(TaskContext& context, const std::string& job) {
  PB_ASSIGN_OR_RETURN(const SlideJobFolders folders, SlideJobFoldersOf(context, job));
  RemoveJobFolder(context, folders);
  return TaskOutput{};
}

}  // namespace patchbay::workers
