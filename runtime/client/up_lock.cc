#include "runtime/client/up_lock.h"

#include <cerrno>
#include <utility>

#include <fcntl.h>

#include "runtime/core/strings.h"

namespace patchbay::client {
namespace {

/// The bytes of the file that stand for a state; nothing is written to them.
constexpr off_t kRunningByte = 0, kReadyByte = 1, kNodeByte = 2;

std::string LockPath(const Environment& environment) { return environment.home + "/up.lock"; }

struct flock LockOf(off_t byte) {
  struct flock lock {};
  lock.l_type = F_WRLCK;
  lock.l_whence = SEEK_SET;
  lock.l_start = byte;
  lock.l_len = 1;
  return lock;
}

bool IsHeld(int fd, off_t byte) {
  struct flock lock = LockOf(byte);
  return fcntl(fd, F_OFD_GETLK, &lock) == 0 && lock.l_type != F_UNLCK;
}

}  // namespace

ClusterState ClusterHere(const Environment& environment) {
  const UniqueFd fd(open(LockPath(environment).c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd.valid()) return ClusterState::kNone;
  if (IsHeld(fd.get(), kReadyByte)) return ClusterState::kReady;
  return IsHeld(fd.get(), kRunningByte) ? ClusterState::kStarting : ClusterState::kNone;
}

bool NodeServesHere(const Environment& environment) {
  const UniqueFd fd(open(LockPath(environment).c_str(), O_RDONLY | O_CLOEXEC));
  return fd.valid() && IsHeld(fd.get(), kNodeByte);
}

StatusOr<UniqueFd> HoldNodeServes(const Environment& environment) {
  const std::string path = LockPath(environment);
  PB_ASSIGN_OR_RETURN(UniqueFd fd, OpenFile(Folders::OfThisUser(), path, O_RDWR | O_CREAT, 0600));
  struct flock lock = LockOf(kNodeByte);
  lock.l_type = F_RDLCK;  // shared
  if (fcntl(fd.get(), F_OFD_SETLK, &lock) != 0) return FromErrno("lock", path, errno);
  return fd;
}

StatusOr<UpLock> UpLock::Take(const Environment& environment) {
  std::string path = LockPath(environment);
  PB_ASSIGN_OR_RETURN(UniqueFd fd, OpenFile(Folders::OfThisUser(), path, O_RDWR | O_CREAT, 0600));
  struct flock lock = LockOf(kRunningByte);
  if (fcntl(fd.get(), F_OFD_SETLK, &lock) == 0) return UpLock(std::move(path), std::move(fd));
  if (errno != EAGAIN && errno != EACCES) return FromErrno("lock", path, errno);
  return FailedPrecondition("up: ", environment.home,
                            ": a cluster is already running from this folder");
}

Status UpLock::ReportReady() const {
  struct flock lock = LockOf(kReadyByte);
  return fcntl(fd_.get(), F_OFD_SETLK, &lock) == 0 ? absl::OkStatus()
                                                   : FromErrno("lock", path_, errno);
}

}  // namespace patchbay::client
