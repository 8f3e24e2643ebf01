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
int RunInline(const plan::OpTable& ops, const std::vector<std::string>& words);

/// Runs the root task `op` with the payload and manifest of `root`, then all tasks that it and its
/// successors spawn, one after another, with its rights, names and signals. Returns the result of
/// the last task, or the error of the first one that fails. FailedPrecondition for jobs whose tasks
/// may fail alone or that end with a summary: they need a cluster.
StatusOr<std::string> RunJobHere(std::string_view op, TaskContext& root);

}  // namespace patchbay::workers
