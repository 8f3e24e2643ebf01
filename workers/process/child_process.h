// Starting, ending and burying child processes with nothing but the kernel: shared by the
// supervisor, which links no library, and the agent.
#pragma once

#include <string>
#include <vector>

#include <sys/types.h>

namespace patchbay::workers {

/// Exit codes that every one of our programs keeps to.
inline constexpr int kExitDone = 0;    ///< finished or drained on purpose: not restarted
inline constexpr int kExitFailed = 1;  ///< restarted, backed off
/// Wrong flags, port, key or folder; the reason is on stderr.
inline constexpr int kExitCannotStart = 2;
/// Another start would not help (the cluster refuses the key, no worker can start): never
/// restarted.
inline constexpr int kExitGivenUp = 3;
/// Stopped by a signal, not by the cluster: not restarted, and its work goes on elsewhere.
inline constexpr int kExitStopped = 75;

struct ChildOptions {
  std::vector<std::string> arguments;  ///< program path first
  /// The write end of a pipe the child inherits as this descriptor number, or -1.
  int inherit_fd = -1;
  /// A process group of its own, so that Ctrl-C on the terminal reaches only the parent.
  bool own_group = false;
};

/// Forks and executes. The child gets SIGKILL when the calling *thread* ends (PR_SET_PDEATHSIG,
/// with the check that the parent did not end before it was set), an empty signal mask and default
/// signal actions. Descriptors without close-on-exec are inherited. Returns the pid, or -errno; a
/// program that cannot be executed shows as exit code kExitCannotStart with the reason on stderr.
/// Call it from a thread that lives as long as the program.
pid_t StartChild(const ChildOptions& options);

/// "exit code 3", "signal 9 (Killed)".
std::string DescribeWaitStatus(int wait_status);

/// How long to wait before starting a program that died again: not at all when it lived for
/// kYoungMs; otherwise kFirstRestartDelayMs, doubling to kLongestRestartDelayMs as long as it dies
/// young.
class RestartDelay {
 public:
  static constexpr long kFirstRestartDelayMs = 100;
  static constexpr long kLongestRestartDelayMs = 5'000;
  static constexpr long kYoungMs = 1'000;

  /// The delay before the next start of a program that lived for `lived_ms`.
  long Next(long lived_ms);

 private:
  long delay_ms_ = 0;
};

}  // namespace patchbay::workers
