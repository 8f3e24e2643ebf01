#include <cctype>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <utility>

#include <fcntl.h>
#include <poll.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "workers/agent/launcher.h"

namespace patchbay::workers {
namespace {

constexpr int kStartField = 22;  ///< the start time's field in /proc/PID/stat, from 1

/// When the process started; 0 when it has ended, a zombie included.
unsigned long long StartOf(pid_t pid) {
  const std::string path = "/proc/" + std::to_string(pid) + "/stat";
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return 0;
  char text[1024];
  const ssize_t got = read(fd, text, sizeof(text) - 1);
  close(fd);
  if (got <= 0) return 0;
  text[got] = '\0';
  // The name in brackets may hold anything; the state follows the last one.
  const char* at = std::strrchr(text, ')');
  if (at == nullptr || at[1] != ' ' || at[2] == 'Z' || at[2] == 'X') return 0;
  ++at;
  for (int field = 3; field < kStartField && at != nullptr; ++field) at = std::strchr(at + 1, ' ');
  return at == nullptr ? 0 : std::strtoull(at, nullptr, 10);
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
