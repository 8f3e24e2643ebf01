// The images of a plan as they travel beside it: where they lie, and what shows later that they are
// still what was planned.
#pragma once

#include <string>
#include <vector>

#include "runtime/base/json.h"
#include "runtime/base/status.h"

namespace patchbay::workers {

/// One per image, in the plan's order.
struct PlannedImages {
  std::vector<std::string> paths;   ///< canonical
  std::vector<std::string> stamps;  ///< StampOf when the digest was taken
};

/// {"root": folder of them all, "images": [paths below it], "stamps": [...]}: short, as a plan
/// travels as an inline result.
Json ToManifest(const PlannedImages& images);

/// InvalidArgument unless it has `count` images and as many stamps.
StatusOr<PlannedImages> PlannedImagesOf(const Json& manifest, std::size_t count);

/// What is cheap to see of an image and differs when its content does: size and time of change of a
/// slide's file or of the metadata of a store of another writer, which every node of a shared file
/// system sees alike. For a store that records its own digest: empty, its digest is the stamp.
/// Content that is replaced under the same size and time goes unseen, as does what changes in the
/// files beside a slide that has several (MIRAX), or in a chunk of another writer's store.
StatusOr<std::string> StampOf(const std::string& path);

}  // namespace patchbay::workers
