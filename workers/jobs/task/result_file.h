// Results that are too large to travel inline: a file named by its hash.
#pragma once

#include <string>

#include "workers/jobs/task/task.h"

namespace patchbay::workers {

/// `result` itself when it fits inline; otherwise it is written durably as
/// <folder>/<sha256>.result and {"result_file": <path>, "sha256": <hex>, "bytes": n} is returned.
/// The folder must be writable under the task's rights.
StatusOr<std::string> InlineOrFile(const TaskContext& context, const std::string& folder,
                                   std::string result);

}  // namespace patchbay::workers
