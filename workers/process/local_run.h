// Tasks in this process, without a cluster: one op (`patchbay-worker run OP`), or a small job.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "workers/jobs/task/task.h"

namespace patchbay::workers {

/// Words after "run": OP [--payload JSON] [--manifest JSON] [--state DIR]. A manifest "-" is read
/// from stdin. Prints the op's result on stdout, or its error on stderr. The rights are those of
/// the user who runs it. SIGTERM and SIGINT cancel the op, a second one ends the process. Returns
/// the exit code: 0 done, 1 failed, 2 usage (also an unknown op). An op that spawns tasks needs a
/// cluster and fails.
int RunInline(const std::vector<std::string>& words);

/// Runs the root task `op` with the payload and manifest of `root`, then what it and those after it
/// spawn, one after another, under its rights, names and signals. The result of the last task; the
/// error of the first one that fails. FailedPrecondition for a job of which tasks fail alone or
/// that ends with a summary: it needs a cluster.
StatusOr<std::string> RunJobHere(std::string_view op, TaskContext& root);

}  // namespace patchbay::workers
