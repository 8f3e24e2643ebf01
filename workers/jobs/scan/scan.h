// One row for every slide, store and CT series below the named paths, from headers.
#pragma once

#include "workers/jobs/task/task.h"

namespace patchbay::workers {

/// Payload: {"hash": whether contents are hashed}. Manifest: `images` and `pseudonym_key`.
/// Result: {"images":
/// [{"path", "verdict", and for those that open "kind", "mpp" or null, "height", "width",
/// "source_bytes", "estimated_bytes", "content_hash" or ""}]}. The verdict is "ok" or why the image
/// cannot be read. A store's hash is that of its source, if it says. Volumes have the rows of
/// ScanVolumes, before the slides of the same path.
StatusOr<TaskOutput> RunScan(TaskContext& context);

}  // namespace patchbay::workers
