// The rule for outputs that exist already, shared by all commands that write.
#pragma once

#include <string>

#include "runtime/cli/arguments.h"
#include "runtime/core/status.h"

namespace patchbay::cli {

/// The flag --force of such a command.
Argument ForceArgument(bool& force);

/// Whether a file, a folder or a link of that name exists, including a dangling link.
bool IsThere(const std::string& path);

/// FailedPrecondition, naming `typed` and the store, where `path`, which is absolute, is a store or
/// lies in one: a file more would damage it.
Status CheckOutsideStores(std::string_view doing, const std::string& path,
                          const std::string& typed);

/// AlreadyExists, naming `typed` and --force, where something is at `path` (IsThere) and `force` is
/// false; and CheckOutsideStores.
Status CheckNothingThere(std::string_view doing, const std::string& path, const std::string& typed,
                         bool force);

}  // namespace patchbay::cli
