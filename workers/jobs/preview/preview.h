// `patchbay preview`: contact sheets of images and of what a run makes of them.
#pragma once

#include <cstddef>

#include "workers/jobs/task/task.h"

namespace patchbay::workers {

inline constexpr std::size_t kMaxPreviewCards = 64;

/// Payload: {}, or {"labels": the set laid over volumes}. Manifest: {"images": [paths], "out": path
/// of the PNG file}. Result: {"images", "bytes"}. InvalidArgument for more than kMaxPreviewCards
/// images and for one without a level small enough for a thumbnail.
StatusOr<TaskOutput> RunPreviewImages(TaskContext& context);

/// Payload: {"plan": text, "patches": how many of the first epoch, evenly spread}. Manifest: that
/// of the planned stream, and "out". Result: {"patches", "bytes"}.
StatusOr<TaskOutput> RunPreviewPatches(TaskContext& context);

}  // namespace patchbay::workers
