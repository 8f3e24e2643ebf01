#include "workers/process/local_job.h"

#include <utility>
#include <vector>

#include "workers/jobs/task_table.h"

namespace patchbay::workers {
namespace {

Status CheckRunsHere(std::string_view op, const protocol::TaskSpec& spec) {
  if (spec.group == 0 && !spec.after_failures) return absl::OkStatus();
  return absl::FailedPreconditionError(StrCat("run ", op, ": it needs a cluster"));
}

/// The tasks of a job and what came of those that have run.
struct LocalJob {
  std::vector<protocol::TaskSpec> tasks;
  std::vector<std::string> results;

  Status Take(std::string_view op, TaskOutput&& output) {
    const auto first = static_cast<std::uint32_t>(tasks.size());
    for (protocol::TaskSpec& spec : output.spawned) {
      PB_RETURN_IF_ERROR(CheckRunsHere(op, spec));
      for (std::uint32_t& on : spec.depends_on) {
        if (on >= protocol::kSpawnedBase) on = first + (on - protocol::kSpawnedBase);
        if (on >= tasks.size())
          return absl::InternalError(StrCat("run ", op, ": a task too early"));
      }
      tasks.push_back(std::move(spec));
    }
    results.push_back(std::move(output.result));
    return absl::OkStatus();
  }
};

/// RunTask for the user of this process, who may see paths.
StatusOr<TaskOutput> RunHere(std::string_view op, TaskContext& context) {
  StatusOr<TaskOutput> made = RunTask(op, context);
  if (made.ok()) return made;
  return Named(made.status(), [&](const Subject& each) { return context.subjects.PathOf(each); });
}

}  // namespace

StatusOr<std::string> RunJobHere(std::string_view op, TaskContext& root) {
  LocalJob job;
  job.tasks.emplace_back();
  root.task.index = 0;
  PB_ASSIGN_OR_RETURN(TaskOutput made, RunHere(op, root));
  PB_RETURN_IF_ERROR(job.Take(op, std::move(made)));
  for (std::size_t i = 1; i < job.tasks.size(); ++i) {
    TaskContext context = root;
    context.task.index = static_cast<std::uint32_t>(i);
    PB_ASSIGN_OR_RETURN(context.payload, ParseJson(job.tasks[i].payload, "task payload"));
    for (const std::uint32_t on : job.tasks[i].depends_on) {
      context.inputs.push_back(job.results[on]);
    }
    PB_ASSIGN_OR_RETURN(made, RunHere(job.tasks[i].op, context));
    PB_RETURN_IF_ERROR(job.Take(op, std::move(made)));
  }
  return std::move(job.results.back());
}

}  // namespace patchbay::workers
