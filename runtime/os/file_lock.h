// One process at a time, by a lock on an open file.
#pragma once

#include <chrono>
#include <functional>

#include "runtime/core/status.h"

namespace patchbay {

/// Waits for the exclusive lock (flock) of `fd`, which ends when that is closed or its process
/// ends. `waiting` is called before each new attempt, and its error ends the wait: there is no lock
/// to be had by a time, so it is asked for again and again. Unavailable after `limit`. Where the
/// file system has no locks there is nothing to wait for: OK.
Status LockFile(int fd, std::chrono::milliseconds limit,
                const std::function<Status()>& waiting = nullptr);

}  // namespace patchbay
