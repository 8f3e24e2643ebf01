#include "runtime/model/jobs/pid_stamp.h"

#include <cerrno>
#include <charconv>
#include <optional>

#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include "runtime/core/strings.h"
#include "runtime/os/file.h"
#include "runtime/os/host_identity.h"

namespace patchbay {
namespace {

constexpr std::size_t kMaxStatBytes = 4096;
constexpr int kStartTimeField = 19;  ///< index in /proc/PID/stat, counted after the program's name

/// When a process began, and whether it is more than the remains of one.
struct Life {
  std::uint64_t started = 0;
  bool ended = false;  ///< a zombie
};

std::optional<Life> LifeOf(std::int64_t pid) {
  const auto fd = OpenFile(Folders::OfThisProcess(), StrCat("/proc/", pid, "/stat"), O_RDONLY);
  if (!fd.ok()) return std::nullopt;
  std::string text(kMaxStatBytes, '\0');
  const ssize_t got = read(fd->get(), text.data(), text.size());
  if (got <= 0) return std::nullopt;
  text.resize(static_cast<std::size_t>(got));
  std::size_t at = text.rfind(") ");  // the name before it may hold anything
  if (at == std::string::npos || at + 2 >= text.size()) return std::nullopt;
  at += 2;
  Life life;
  life.ended = text[at] == 'Z' || text[at] == 'X';
  for (int i = 0; i < kStartTimeField && at != std::string::npos; ++i) {
    at = text.find(' ', at);
    if (at != std::string::npos) ++at;
  }
  if (at == std::string::npos) return std::nullopt;
  const auto [end, error] =
      std::from_chars(text.data() + at, text.data() + text.size(), life.started);
  if (error != std::errc()) return std::nullopt;
  return life;
}

}  // namespace

StatusOr<PidStamp> ThisPid() {
  PidStamp process;
  PB_ASSIGN_OR_RETURN(process.host, HostIdentity());
  process.pid = getpid();
  const std::optional<Life> life = LifeOf(process.pid);
  if (!life) return FailedPrecondition("find process: /proc has no line for it");
  process.started = life->started;
  return process;
}

bool HasEnded(const PidStamp& process) {
  const auto here = HostIdentity();
  if (!here.ok() || *here != process.host) return false;
  const std::optional<Life> life = LifeOf(process.pid);
  if (life) return life->ended || life->started != process.started;
  return kill(static_cast<pid_t>(process.pid), 0) != 0 && errno == ESRCH;
}

}  // namespace patchbay
