// One op in a process of its own, without a cluster: `patchbay-worker run OP`.
#pragma once

#include <string>
#include <vector>

namespace patchbay::workers {

/// Words after "run": OP [--payload JSON] [--manifest JSON] [--state DIR]. A manifest "-" is read
/// from stdin. Prints the op's result on stdout, or its error on stderr. The rights are those of
/// the user who runs it. SIGTERM and SIGINT cancel the op, a second one ends the process. Returns
/// the exit code: 0 done, 1 failed, 2 usage (also an unknown op). An op that spawns tasks needs a
/// cluster and fails.
int RunInline(const std::vector<std::string>& words);

}  // namespace patchbay::workers
