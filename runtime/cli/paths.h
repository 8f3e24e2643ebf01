// Paths as users write them, made absolute before they go to other processes.
#pragma once

#include <string>

#include "runtime/base/status.h"

namespace patchbay::cli {

/// Absolute and normalised, relative to `base` ("" = the current folder). Links are followed as far
/// as the path exists; what does not exist is kept.
StatusOr<std::string> AbsolutePath(const std::string& path, const std::string& base = "");

/// A folder with Zarr metadata in it.
bool IsStore(const std::string& path);

}  // namespace patchbay::cli
