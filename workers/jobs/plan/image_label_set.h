// The label set that a config asks for, as an image that is being planned has it.
#pragma once

#include <string>

#include "runtime/model/plan/plan.h"
#include "runtime/os/folders.h"
#include "workers/sources/image_places.h"

namespace patchbay::workers {

/// That revision of `set` below the store at `path`. InvalidArgument, naming the path, for a
/// slide, a store without that set, and a set that was made for other pixels.
StatusOr<plan::ImageLabels> LabelSetOf(const Folders& allowed, const std::string& path,
                                       const std::string& set, const LabelRevision& revision,
                                       const plan::PlannedImage& image);

}  // namespace patchbay::workers
