// What `patchbay` takes from its surroundings, read once by main and passed on.
#pragma once

#include <string>

#include "runtime/base/status.h"

namespace patchbay::cli {

struct Environment {
  std::string home;          ///< PATCHBAY_HOME, or ~/.patchbay
  std::string cluster_file;  ///< PATCHBAY_CLUSTER, or ""
  std::string temporary;     ///< XDG_RUNTIME_DIR where it is a folder of ours, else TMPDIR or /tmp
};

/// From main's third argument.
Environment ReadEnvironment(char** variables);

}  // namespace patchbay::cli
