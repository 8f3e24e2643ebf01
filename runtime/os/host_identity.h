// The identity of this machine, in the sense that decides how shards are delivered.
#pragma once

#include <string>

#include "runtime/core/ids.h"
#include "runtime/core/status.h"

namespace patchbay {

/// "<boot id>-<inode of the PID namespace>-<inode of the network namespace>-user<id>": two
/// processes with the same value share a kernel and a user, see each other's pids and abstract
/// sockets, so memory can be shared and a death can be proven. A host name guarantees neither.
/// FailedPrecondition without /proc.
StatusOr<std::string> HostIdentity();

/// The name of this machine for people; "unknown" when it has none.
std::string HostName();

}  // namespace patchbay
