// Arguments of commands that read a run config.
#pragma once

#include <string>
#include <vector>

#include "runtime/cli/arguments.h"

namespace patchbay::cli {

/// --set KEY=VALUE, any number of times.
inline Argument SetArgument(std::vector<std::string>& overrides) {
  return {"--set", "KEY=VALUE", "a config key's value instead of the file's; repeatable",
          &overrides};
}

/// --split NAME.
inline Argument SplitArgument(std::string& split) {
  return {"--split", "NAME", "the images of one split of the table (default: all)", &split};
}

}  // namespace patchbay::cli
