// Tracks how long the scheduler has been unreachable, and words what the user of a stream is told.
#pragma once

#include <string>
#include <utility>

#include "runtime/core/clock.h"
#include "runtime/core/status.h"

namespace patchbay::client {

inline constexpr TimeMs kSayAwayAfterMs = 1'000;  ///< a restart takes less
inline constexpr TimeMs kSayAwayEveryMs = 10'000;

/// Failures of a request after which asking again is of no use.
bool IsFinal(const Status& status);

/// A value type: the caller passes the time.
class SchedulerAway {
 public:
  /// `what`: the waiting thing ("stream 12"), which waits at most `grace_ms`.
  SchedulerAway(std::string what, TimeMs grace_ms) : what_(std::move(what)), grace_ms_(grace_ms) {}

  /// The connection is gone; known already if it was.
  void Lost(TimeMs now_ms);
  /// The line to log when it is back; empty when its absence was not logged.
  std::string Back();
  /// Time since it was lost; 0 while it is connected.
  TimeMs AwayMs(TimeMs now_ms) const { return since_ms_ < 0 ? 0 : now_ms - since_ms_; }
  /// While it is away: the line to log, with the remaining time; empty when none is due.
  /// Unavailable once the grace is over. `why`: what the connection is waiting for.
  StatusOr<std::string> Look(TimeMs now_ms, const Status& why);

 private:
  std::string what_;
  TimeMs grace_ms_;
  TimeMs since_ms_ = -1;  ///< -1: connected
  TimeMs said_ms_ = -1;   ///< -1: not since it went away
};

}  // namespace patchbay::client
