// One row for every slide, store and CT series below the named paths, from headers.
#pragma once

#include "workers/jobs/task/task.h"

namespace patchbay::workers {

/// Payload: {"hash": whether contents are hashed}. Manifest: `images` and `pseudonym_key`.
/// Result: results::ScanRows; of a path its volumes (ScanVolumes) stand before its slides.
StatusOr<TaskOutput> RunScan(TaskContext& context);

}  // namespace patchbay::workers
