#include "runtime/wire/data/exit_watch.h"

#include <cerrno>
#include <string>

#include <fcntl.h>
#include <poll.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "runtime/core/strings.h"

namespace patchbay::data {
namespace {

absl::Status Gone(pid_t pid) { return NotFound("watch process: ", pid, ": there is none"); }

}  // namespace

StatusOr<ExitWatch> ExitWatch::Of(pid_t pid, ExitProof preferred) {
  if (preferred == ExitProof::kPidfd) {
    UniqueFd fd(static_cast<int>(syscall(SYS_pidfd_open, pid, 0)));
    if (fd.valid()) return ExitWatch(std::move(fd));
    if (errno == ESRCH) return Gone(pid);
    // A container's filter of system calls may answer EPERM for unknown calls.
    if (errno != ENOSYS && errno != EPERM) return FromErrno("open pidfd", StrCat(pid), errno);
  }
  ExitWatch watch;
  watch.proof_ = ExitProof::kFolder;
  watch.fd_ = UniqueFd(open(StrCat("/proc/", pid).c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  if (watch.fd_.valid()) return watch;
  if (errno == ENOENT || errno == ESRCH) return Gone(pid);
  return FromErrno("open process folder", StrCat(pid), errno);
}

bool ExitWatch::Ended() const {
  if (!fd_.valid()) return false;
  if (proof_ == ExitProof::kPidfd) {
    pollfd wait{fd_.get(), POLLIN, 0};
    return poll(&wait, 1, 0) == 1;
  }
  // The descriptor stays with the process it was opened for, also when its number is used again.
  return faccessat(fd_.get(), "stat", F_OK, 0) != 0 && (errno == ESRCH || errno == ENOENT);
}

}  // namespace patchbay::data
