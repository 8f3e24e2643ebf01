// The tasks that a retry of a job runs again: tasks that did not succeed, and their successors.
#pragma once

#include <cstdint>
#include <vector>

#include "scheduler/state/job_table.h"

namespace patchbay::scheduler {

/// One entry per task of the job.
struct RetryPlan {
  std::vector<bool> again;       ///< starts over
  std::vector<bool> superseded;  ///< its spawner starts over and will spawn it again
};

/// - A task that failed, was cancelled or quarantined runs again.
/// - If the task that spawned it is of the same group (one slide), that task runs again instead:
///   its findings may be the fault. The tasks that it had spawned are superseded.
/// - A task that runs after failures, and every successor of one, runs again with its inputs; a
///   summary runs again when any task that it did not spawn itself does.
/// - No task is superseded that another task still depends on.
/// Depends only on the durable state. O(tasks), a few times.
RetryPlan PlanRetry(const Job& job);

/// The retry of journals of version 1: tasks that did not succeed, and summaries.
RetryPlan PlanNarrowRetry(const Job& job);

}  // namespace patchbay::scheduler
