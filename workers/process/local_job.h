// A job whose tasks all run here and now, without a cluster.
#pragma once

#include <string>
#include <string_view>

#include "workers/jobs/task/task.h"

namespace patchbay::workers {

/// Runs the root task `op` with the payload and manifest of `root`, then what it and those after it
/// spawn, one after another, under its rights, names and signals. The result of the last task; the
/// error of the first one that fails. FailedPrecondition for a job of which tasks fail alone or
/// that ends with a summary: it needs a cluster.
StatusOr<std::string> RunJobHere(std::string_view op, TaskContext& root);

}  // namespace patchbay::workers
