// The folder a scheduler keeps its journal in: its own, local, and taken by one process at a time.
#pragma once

#include <string>

#include "runtime/core/status.h"
#include "runtime/os/file.h"

namespace patchbay::scheduler {

/// Made if missing (0700). The descriptor holds the lock until it is closed. FailedPrecondition
/// when another scheduler holds it or the folder is on a network file system.
StatusOr<UniqueFd> TakeStateFolder(const std::string& folder);

}  // namespace patchbay::scheduler
