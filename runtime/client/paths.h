// Paths as users write them, made absolute before they go to other processes.
#pragma once

#include <string>
#include <vector>

#include "runtime/core/outcome.h"
#include "runtime/core/status.h"

namespace patchbay::client {

/// Absolute and normalised. Links are followed as far as the path exists; the rest of the path is
/// kept.
StatusOr<std::string> AbsolutePath(const std::string& path);

/// The names behind the numbers of one job's errors, as far as this user knows them. A
/// SubjectNames.
struct JobNames {
  std::vector<std::string> stores, files, slides, images;
  std::string out;  ///< the job's output folder

  std::string operator()(const Subject& subject) const;
};

}  // namespace patchbay::client
