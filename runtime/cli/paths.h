// Paths as users write them, made absolute before they go to other processes.
#pragma once

#include <string>

#include "runtime/base/status.h"

namespace patchbay::cli {

/// Absolute and normalised. Links are followed as far
/// as the path exists; what does not exist is kept.
StatusOr<std::string> AbsolutePath(const std::string& path);

/// A folder with Zarr metadata in it.
bool IsStore(const std::string& path);

}  // namespace patchbay::cli
