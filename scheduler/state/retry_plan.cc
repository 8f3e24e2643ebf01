#include "scheduler/state/retry_plan.h"

#include <algorithm>
#include <cstddef>

namespace patchbay::scheduler {
namespace {

bool IsLost(const Task& task) {
  return IsEnded(task.state) && task.state != TaskState::kDone && !task.superseded;
}

class Planner {
 public:
  explicit Planner(const Job& job)
      : job_(job), entry_(job.tasks.size()), under_(job.tasks.size(), kNoTask) {
    pinned_.resize(job.tasks.size());
    reopened_summary_.resize(job.tasks.size());
    for (std::uint32_t i = 0; i < job.tasks.size(); ++i) {
      const Task& task = job.tasks[i];
      entry_[i] = i;
      if (task.spawned_by == kNoTask) continue;
      const Task& spawner = job.tasks[task.spawned_by];
      if (task.spec.group != 0 && spawner.spec.group == task.spec.group) {
        entry_[i] = entry_[task.spawned_by];
      }
      under_[i] = spawner.IsSummary() ? task.spawned_by : under_[task.spawned_by];
    }
  }

  RetryPlan Plan() {
    for (;;) {
      Decide();
      ChooseSummaries();
      Decide();
      if (!Pin()) return plan_;
    }
  }

 private:
  std::vector<bool> RestartedEntries() const {
    std::vector<bool> restarted(job_.tasks.size());
    for (std::size_t i = 0; i < job_.tasks.size(); ++i) {
      const std::uint32_t entry = entry_[i];
      const bool ended = IsEnded(job_.tasks[entry].state);
      if (IsLost(job_.tasks[i]) && entry != i && ended && !pinned_[entry]) restarted[entry] = true;
    }
    return restarted;
  }

  /// In order: spawners and dependencies have lower indices.
  void Decide() {
    plan_.again.assign(job_.tasks.size(), false);
    plan_.superseded.assign(job_.tasks.size(), false);
    const std::vector<bool> restarted = RestartedEntries();
    for (std::size_t i = 0; i < job_.tasks.size(); ++i) {
      const Task& task = job_.tasks[i];
      if (task.superseded) continue;
      const std::uint32_t by = task.spawned_by;
      plan_.superseded[i] =
          by != kNoTask && (plan_.superseded[by] || (plan_.again[by] && !pinned_[by]));
      if (plan_.superseded[i] || !IsEnded(task.state)) continue;
      plan_.again[i] = IsLost(task) || restarted[i] || reopened_summary_[i] || InputsChange(task);
    }
  }

  bool InputsChange(const Task& task) const {
    return task.follows &&
           std::any_of(task.spec.depends_on.begin(), task.spec.depends_on.end(),
                       [&](std::uint32_t on) { return plan_.again[on] || plan_.superseded[on]; });
  }

  /// A summary runs again when anything does that it did not spawn itself.
  void ChooseSummaries() {
    std::uint64_t all = 0;
    std::vector<std::uint64_t> below(job_.tasks.size());
    for (std::size_t i = job_.tasks.size(); i-- > 0;) {
      if (plan_.again[i] && !job_.tasks[i].IsSummary()) {
        ++all;
        ++below[i];
      }
      if (under_[i] != kNoTask) below[under_[i]] += below[i];
    }
    for (const std::uint32_t summary : job_.summaries) {
      reopened_summary_[summary] = all > below[summary];
    }
  }

  /// False when no task depends on a superseded one; otherwise the spawners keep their spawned
  /// tasks.
  bool Pin() {
    bool any = false;
    for (std::size_t i = 0; i < job_.tasks.size(); ++i) {
      if (plan_.superseded[i] || job_.tasks[i].superseded) continue;
      for (const std::uint32_t on : job_.tasks[i].spec.depends_on) {
        if (!plan_.superseded[on]) continue;
        std::uint32_t top = on;
        while (plan_.superseded[top]) top = job_.tasks[top].spawned_by;
        any = any || !pinned_[top];
        pinned_[top] = true;
      }
    }
    return any;
  }

  const Job& job_;
  std::vector<std::uint32_t> entry_;  ///< the first task of the group among its spawners, or itself
  std::vector<std::uint32_t> under_;  ///< the nearest summary among its spawners
  std::vector<bool> pinned_, reopened_summary_;
  RetryPlan plan_;
};

}  // namespace

RetryPlan PlanRetry(const Job& job) { return Planner(job).Plan(); }

RetryPlan PlanNarrowRetry(const Job& job) {
  RetryPlan plan;
  plan.superseded.resize(job.tasks.size());
  for (const Task& task : job.tasks) {
    plan.again.push_back(IsLost(task) || (task.state == TaskState::kDone && task.IsSummary()));
  }
  return plan;
}

}  // namespace patchbay::scheduler
