// The manifest of a plan's images as workers read it: their paths, and the stamps that later show
// whether they are still as planned.
#pragma once

#include <string>
#include <vector>

#include "runtime/core/status.h"
#include "runtime/format/json/json.h"

namespace patchbay::workers {

/// One per image, in the plan's order.
struct PlannedImages {
  std::vector<std::string> paths;      ///< canonical
  std::vector<std::string> stamps;     ///< StampOf when the digest was taken
  std::vector<std::string> functions;  ///< files of the plan's own functions
};

/// Reads a plan::PlannedManifest. InvalidArgument unless it has `count` images and as many stamps.
StatusOr<PlannedImages> PlannedImagesOf(const Json& manifest, std::size_t count);

}  // namespace patchbay::workers
