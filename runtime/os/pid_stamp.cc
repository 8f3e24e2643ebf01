#include "runtime/os/pid_stamp.h"

#include <cerrno>
#include <csignal>
#include <optional>

#include <unistd.h>

#include "runtime/os/host_identity.h"
#include "runtime/os/pid_life.h"

namespace patchbay {

StatusOr<PidStamp> ThisPid() {
  PidStamp process;
  PB_ASSIGN_OR_RETURN(process.host, HostIdentity());
  process.pid = getpid();
  const std::optional<PidLife> life = LifeOf(process.pid);
  if (!life) return FailedPrecondition("find process: /proc has no line for it");
  process.started = life->started;
  return process;
}

bool HasEnded(const PidStamp& process) {
  const auto here = HostIdentity();
  if (!here.ok() || *here != process.host) return false;
  const std::optional<PidLife> life = LifeOf(process.pid);
  if (life) return life->ended || life->started != process.started;
  return kill(static_cast<pid_t>(process.pid), 0) != 0 && errno == ESRCH;
}

}  // namespace patchbay
