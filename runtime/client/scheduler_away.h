// How long the scheduler has been away, and what the user of a stream is told of it.
#pragma once

#include <string>
#include <utility>

#include "runtime/core/clock.h"
#include "runtime/core/status.h"

namespace patchbay::client {

inline constexpr TimeMs kSayAwayAfterMs = 1'000;  ///< a restart takes less
inline constexpr TimeMs kSayAwayEveryMs = 10'000;

/// A value: the caller says what time it is.
class SchedulerAway {
 public:
  /// `what` is waiting ("stream 12"), for `grace_ms` at most.
  SchedulerAway(std::string what, TimeMs grace_ms) : what_(std::move(what)), grace_ms_(grace_ms) {}

  /// The connection is gone; known already if it was.
  void Lost(TimeMs now_ms);
  /// The line to log that it is there again; empty when its absence was not spoken of.
  std::string Back();
  /// Since when; 0 while it is there.
  TimeMs AwayMs(TimeMs now_ms) const { return since_ms_ < 0 ? 0 : now_ms - since_ms_; }
  /// While it is away: the line to log, with the time that is left; empty when none is due.
  /// Unavailable once the grace is over. `why` is what the connection is waiting for.
  StatusOr<std::string> Look(TimeMs now_ms, const Status& why);

 private:
  std::string what_;
  TimeMs grace_ms_;
  TimeMs since_ms_ = -1;  ///< -1: it is there
  TimeMs said_ms_ = -1;   ///< -1: not since it went away
};

}  // namespace patchbay::client
