// Arguments of commands that read a run config.
#pragma once

#include <string>
#include <vector>

#include "runtime/cli/arguments.h"

namespace patchbay::cli {

/// --set KEY=VALUE, any number of times.
inline Argument SetArgument(std::vector<std::string>& overrides) {
  return {"--set", "KEY=VALUE", "override a key of the config; repeatable", &overrides};
}

/// --split NAME.
inline Argument SplitArgument(std::string& split) {
  return {"--split", "NAME", "one split of the table; all = every row, not augmented", &split};
}

}  // namespace patchbay::cli
