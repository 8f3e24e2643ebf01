// Adds the paths of a stream's images to errors, which arrive without them. Only the user's own
// terminal may show paths.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "runtime/core/status.h"
#include "runtime/format/json/json.h"
#include "runtime/model/results/skipped_images.h"

namespace patchbay::client {

/// The paths of a plan's images, from the plan, or of the dataset's, from the result of the job's
/// root task; empty when it has none to read.
std::vector<std::string> PlannedPaths(const std::string& result);

/// The skipped images that the plan names; none of a plan that cannot be read.
results::SkippedImages SkippedImagesOf(const Json& plan);

/// `status` with the paths of the entries of the dataset and of images. Where a plan could not be
/// made, its images have no paths yet; the advice then says how to find them.
Status NamePaths(const Status& status, const std::vector<std::string>& datasets,
                 const std::vector<std::string>& images);

}  // namespace patchbay::client
