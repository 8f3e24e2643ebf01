#include "workers/process/child_process.h"

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

namespace patchbay::workers {
namespace {

/// Only async-signal-safe calls: the parent may have threads.
[[noreturn]] void BecomeProgram(char* const* argv, pid_t parent, const ChildOptions& options) {
  if (prctl(PR_SET_PDEATHSIG, SIGKILL) != 0 || getppid() != parent) _exit(kExitFailed);
  for (int signal_number = 1; signal_number < NSIG; ++signal_number) {
    if (signal_number != SIGKILL && signal_number != SIGSTOP) signal(signal_number, SIG_DFL);
  }
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
  if (options.inherit_fd >= 0) fcntl(options.inherit_fd, F_SETFD, 0);
  if (options.own_group) setpgid(0, 0);
  execv(argv[0], argv);
  const char* reason = strerrordesc_np(errno);
  for (const char* piece : {"start: ", static_cast<const char*>(argv[0]), ": ", reason, "\n"}) {
    if (write(STDERR_FILENO, piece, std::strlen(piece)) < 0) break;
  }
  _exit(kExitCannotStart);
}

}  // namespace

pid_t StartChild(const ChildOptions& options) {
  std::vector<char*> argv;
  for (const std::string& argument : options.arguments) {
    argv.push_back(const_cast<char*>(argument.c_str()));  // execv promises not to write
  }
  if (argv.empty()) return -EINVAL;
  argv.push_back(nullptr);
  const pid_t parent = getpid();
  const pid_t pid = fork();
  if (pid < 0) return -errno;
  if (pid == 0) BecomeProgram(argv.data(), parent, options);
  return pid;
}

std::string DescribeWaitStatus(int wait_status) {
  if (WIFSIGNALED(wait_status)) {
    const int signal_number = WTERMSIG(wait_status);
    const char* name = sigdescr_np(signal_number);
    return "signal " + std::to_string(signal_number) + " (" + (name ? name : "unknown") + ")";
  }
  return "exit code " + std::to_string(WEXITSTATUS(wait_status));
}

long RestartDelay::Next(long lived_ms) {
  if (lived_ms >= kYoungMs) return delay_ms_ = 0;
  delay_ms_ =
      delay_ms_ == 0 ? kFirstRestartDelayMs : std::min(delay_ms_ * 2, kLongestRestartDelayMs);
  return delay_ms_;
}

}  // namespace patchbay::workers
