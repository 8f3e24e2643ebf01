// Whether a child that sends heartbeats is frozen: the parent's side, for the supervisor, which
// links no library, and the agent.
#pragma once

#include <string>

#include <sys/types.h>

namespace patchbay::workers {

/// Watches one child. A child is lost when it has sent nothing for kSilentMs and its main thread
/// did not run either, nor waited for a core. Slow is not frozen: a main thread that does run has
/// kBusySilentMs, and one in uninterruptible sleep or stopped by a debugger is never lost. The
/// counts start over when the watcher itself did not look for kWatcherPausedMs (a suspended
/// machine, a frozen cgroup, an overloaded machine). All times are of the monotonic clock.
class HeartbeatWatch {
 public:
  static constexpr long kLookEveryMs = 250;  ///< as often as children send
  static constexpr long kSilentMs = 1'500;
  static constexpr long kBusySilentMs = 15'000;
  static constexpr long kStartSilentMs = 10'000;  ///< without running, before the first heartbeat
  static constexpr long kWatcherPausedMs = 500;

  /// The child was started: resets the counts of the one before it.
  void Start(long now_ms);
  /// Notes a heartbeat.
  void Beat(long now_ms);
  /// Call every kLookEveryMs while the child runs: true when it is to be killed.
  bool Lost(pid_t pid, long now_ms);

 private:
  bool beats_ = false;  ///< sent one since its start
  long beat_ms_ = 0;    ///< time of the last heartbeat, or the start
  long active_ms_ = 0;  ///< when the main thread was last seen to have run, or to be excused
  long looked_ms_ = 0;
  std::string run_time_;  ///< the main thread's run time, as the kernel writes it, at the last look
};

}  // namespace patchbay::workers
