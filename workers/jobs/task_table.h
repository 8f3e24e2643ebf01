// The list of all ops that a worker can run. Jobs name ops from it; no code is sent.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "workers/jobs/task/task.h"

namespace patchbay::workers {

/// Whether the op is registered.
bool HasTask(std::string_view op);

/// InvalidArgument for an op that has no part in planning a stream; OK for an unknown one.
Status CheckPlans(std::string_view op);

/// Every registered op, sorted.
std::vector<std::string> TaskNames();

/// Finds and runs: Unimplemented with the nearest name for an unknown op. Turns an exception that
/// escapes a third-party library into Internal, and a result above the inline limit into Internal.
StatusOr<TaskOutput> RunTask(std::string_view op, TaskContext& context);

}  // namespace patchbay::workers
