// Errors of a stream come back without paths; the user's own terminal may show them.
#pragma once

#include <string>
#include <vector>

#include "runtime/base/status.h"

namespace patchbay::cli {

/// The paths of a plan's images, from the result of stream.plan; empty when it has none to read.
std::vector<std::string> PlannedPaths(const std::string& result);

/// `status` with "dataset N" and "image N" replaced by their paths. Where a plan could not be made
/// its images have no paths yet: then the text says how to find out.
Status NamePaths(const Status& status, const std::vector<std::string>& datasets,
                 const std::vector<std::string>& images);

}  // namespace patchbay::cli
