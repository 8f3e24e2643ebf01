#include <cstdint>
#include <optional>
#include <utility>

#include <poll.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "runtime/os/pid_life.h"
#include "workers/agent/launcher.h"

namespace patchbay::workers {
namespace {

/// When the process started; 0 when it has ended, a zombie included.
std::uint64_t StartOf(pid_t pid) {
  const std::optional<PidLife> life = LifeOf(pid);
  return life && !life->ended ? life->started : 0;
}

}  // namespace

OwnerWatch::OwnerWatch(pid_t pid) : pid_(pid) {
  fd_ = static_cast<int>(syscall(SYS_pidfd_open, pid, 0));
  if (fd_ < 0) started_ = StartOf(pid);
}

OwnerWatch::OwnerWatch(OwnerWatch&& other) noexcept
    : pid_(other.pid_), fd_(std::exchange(other.fd_, -1)), started_(other.started_) {}

OwnerWatch& OwnerWatch::operator=(OwnerWatch&& other) noexcept {
  std::swap(pid_, other.pid_);
  std::swap(fd_, other.fd_);
  std::swap(started_, other.started_);
  return *this;
}

OwnerWatch::~OwnerWatch() {
  if (fd_ >= 0) close(fd_);
}

bool OwnerWatch::Ended() const {
  if (fd_ < 0) return started_ == 0 || StartOf(pid_) != started_;
  pollfd wait{fd_, POLLIN, 0};
  return poll(&wait, 1, 0) == 1;
}

}  // namespace patchbay::workers
