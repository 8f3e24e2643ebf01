// Inspects one image, and verifies a store.
#pragma once

#include "workers/jobs/task/task.h"

namespace patchbay::workers {

/// `inspect`: the one of `images`. Result: zarr::ImageReport, or results::VolumesReport of volumes.
StatusOr<TaskOutput> RunInspect(TaskContext& context);

/// `verify`: the one of `images`, payload {"threads": n} (1). Result: {"clean", "shards",
/// "chunks", "stored_bytes", "faults", "bad": [...], "digest", "pixel_digest", "recorded_digest",
/// "recorded_pixel_digest"}. A store with faults is a result, not an error.
StatusOr<TaskOutput> RunVerify(TaskContext& context);

}  // namespace patchbay::workers
