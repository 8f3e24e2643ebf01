// Paths as users write them, made absolute before they go to other processes.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "runtime/core/status.h"

namespace patchbay::client {

/// Absolute and normalised. Links are followed as far
/// as the path exists; what does not exist is kept.
StatusOr<std::string> AbsolutePath(const std::string& path);

/// A folder with Zarr metadata in it.
bool IsStore(const std::string& path);

/// Errors come back from workers without paths; the user's own terminal may show them. Replaces
/// every "`word` N" by paths[N]; true when there was one that has no path.
bool NameNumbered(std::string& text, std::string_view word, const std::vector<std::string>& paths);

}  // namespace patchbay::client
