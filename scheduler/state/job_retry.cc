// A job starts over where it did not succeed.
#include "scheduler/state/job_table.h"
#include "scheduler/state/retry_plan.h"

namespace patchbay::scheduler {

Status JobTable::ApplyBody(RetryRecord&& r, std::int64_t, Effects& effects) {
  Job* job = Find(r.job);
  if (job == nullptr) return Internal("apply record: job ", r.job, ": retry of no job");
  if (job->finish_order != 0) {
    finished_.erase({job->finish_order, job->id});
    finished_bytes_ -= job->size_bytes;
    CountOpened(*job);
  }
  job->finish_order = 0;
  job->finished_at = 0;
  job->state = JobState::kRunning;
  job->failures.clear();
  job->stream_outcome = {};
  job->detached.clear();
  for (const auto& [unit, outcome] : job->units.failed) {
    job->units.finished[unit] = false;
    --job->units.count;
  }
  job->units.failed.clear();
  job->void_leases = r.void_leases;
  for (auto& [number, group] : job->groups) group.failed = false;
  const RetryPlan plan = r.starts_over ? PlanRetry(*job) : PlanNarrowRetry(*job);
  job->last_retry = {r.sender, r.request, 0};
  for (std::uint32_t i = 0; i < job->tasks.size(); ++i) {
    if (plan.superseded[i]) Supersede(*job, i, effects);
    if (!plan.again[i]) continue;
    Reopen(job->tasks[i]);
    ++job->last_retry.tasks;
  }
  just_ended_.clear();
  RebuildDerived(*job);
  for (std::uint32_t i = 0; i < job->tasks.size(); ++i) {
    if (!IsEnded(job->tasks[i].state) && job->MayRun(job->tasks[i])) {
      effects.runnable.push_back({job->id, i});
    }
  }
  return absl::OkStatus();
}

/// Starts an ended task over. Its derived counts are recomputed afterwards.
void JobTable::Reopen(Task& task) {
  task.state = TaskState::kWaiting;
  task.result_dropped = false;
  std::string().swap(task.result);
  task.attempts = 0;
  task.solo_deaths = {};
}

/// Drops a task that its spawner will spawn again; its results no longer count.
void JobTable::Supersede(Job& job, std::uint32_t index, Effects& effects) {
  StopTask(job, index, effects);
  Task& task = job.tasks[index];
  task.state = TaskState::kCancelled;
  task.superseded = task.result_dropped = true;
  std::string().swap(task.result);
  std::string().swap(task.spec.payload);
  std::vector<std::uint32_t>().swap(task.spec.depends_on);
}

}  // namespace patchbay::scheduler
