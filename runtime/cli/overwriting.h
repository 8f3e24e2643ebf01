// What a command that writes one file does about a file that is there.
#pragma once

#include <string>

#include "runtime/base/status.h"
#include "runtime/cli/arguments.h"

namespace patchbay::cli {

/// The flag --force of such a command.
Argument ForceArgument(bool& force);

/// AlreadyExists, naming `typed` and --force, where something is at `path` and `force` is false. A
/// link counts, wherever it leads.
Status CheckNothingThere(std::string_view doing, const std::string& path, const std::string& typed,
                         bool force);

}  // namespace patchbay::cli
