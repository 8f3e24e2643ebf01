// The tasks that a retry of a job runs again: those that did not succeed, and their successors.
#pragma once

#include <cstdint>
#include <vector>

#include "scheduler/state/job_table.h"

namespace patchbay::scheduler {

/// One entry a task of the job.
struct RetryPlan {
  std::vector<bool> again;       ///< starts over
  std::vector<bool> superseded;  ///< its spawner starts over and will spawn it anew
};

/// - A task that failed, was cancelled or quarantined runs again.
/// - If the task that brought it into its group is of the same group (one slide), that one runs
///   again instead: what it found out may be what is wrong. What it had spawned is superseded.
/// - A task that runs after failures, and whatever comes after one, runs again with its inputs; a
///   summary when anything but what it spawned itself does.
/// - Nothing is superseded that another task still depends on.
/// Depends on the durable state alone. O(tasks), a few times.
RetryPlan PlanRetry(const Job& job);

/// As journals of version 1 meant it: what did not succeed, and summaries.
RetryPlan PlanNarrowRetry(const Job& job);

}  // namespace patchbay::scheduler
