// `patchbay preview`: contact sheets of images and of the patches that a run makes.
#pragma once

#include "workers/jobs/task/task.h"

namespace patchbay::workers {

/// Payload: PreviewOptions. Manifest: `images`, and the PNG file `out`. Result: {"images",
/// "bytes"}. InvalidArgument for more than kMaxPreviewCards images and for one without a level
/// small enough for a thumbnail.
StatusOr<TaskOutput> RunPreviewImages(TaskContext& context);

/// Payload: PreviewOptions, and {"plan": text}. Manifest: that
/// of the planned stream, and "out". Result: {"patches", "bytes"}.
StatusOr<TaskOutput> RunPreviewPatches(TaskContext& context);

}  // namespace patchbay::workers
