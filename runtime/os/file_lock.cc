#include "runtime/os/file_lock.h"

#include <cerrno>
#include <thread>

#include <sys/file.h>

namespace patchbay {
namespace {

/// Between two attempts. Longer means a later lock, shorter more attempts.
constexpr std::chrono::milliseconds kPause{10};

}  // namespace

Status LockFile(int fd, std::chrono::milliseconds limit, const std::function<Status()>& waiting) {
  for (std::chrono::milliseconds waited{0}; waited < limit; waited += kPause) {
    if (flock(fd, LOCK_EX | LOCK_NB) == 0) return absl::OkStatus();
    if (errno != EWOULDBLOCK && errno != EINTR) return absl::OkStatus();
    if (waiting) PB_RETURN_IF_ERROR(waiting());
    std::this_thread::sleep_for(kPause);
  }
  return Unavailable("lock: another process holds it");
}

}  // namespace patchbay
