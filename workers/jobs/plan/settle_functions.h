// Turns the own functions of a config into what a plan says of them: digest and versions.
#pragma once

#include <string>
#include <vector>

#include "runtime/model/plan/run_config.h"
#include "workers/jobs/task/task.h"

namespace patchbay::workers {

/// Loads each function once, as workers will, and sets the digest of its file and the versions of
/// Python and NumPy; their paths are in the manifest's "functions". InvalidArgument, with the key,
/// where this cluster does not run the file, the function cannot be loaded, or one of these is
/// another than the config insists on.
Status SettleFunctions(TaskContext& context, plan::RunConfig& config);

/// The paths, for the planned manifest.
StatusOr<std::vector<std::string>> FunctionPathsOf(const TaskContext& context);

}  // namespace patchbay::workers
