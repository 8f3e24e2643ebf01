// Starting a cluster's processes from a process that may have threads, children and signal handlers
// of its own: through patchbay-launcher (workers/agent/launcher.h), which nothing of the caller
// reaches.
#pragma once

#include <string>

#include "runtime/client/node_settings.h"
#include "runtime/core/status.h"
#include "runtime/os/file.h"

namespace patchbay::client {

struct LaunchRequest {
  std::string folder;    ///< the launcher removes it at the end
  int lock_fd = -1;      ///< the folder's lock: held by the launcher too
  std::string log_file;  ///< standard output and error of all of them
  std::string share, hello;
  long stop_ms = 2'000;
};

/// A socket to the launcher: what the supervisor says comes from it, and its end when nothing is
/// left. By posix_spawn with exactly the descriptors that are meant, default signals and an empty
/// mask; the child that this process would have to reap ends before this returns.
StatusOr<UniqueFd> LaunchSupervisor(const NodeSettings& settings, const LaunchRequest& request);

}  // namespace patchbay::client
