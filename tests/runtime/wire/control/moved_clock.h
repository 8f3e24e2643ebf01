// Time that a test moves, for an event loop that is to run its timers at once.
#pragma once

#include "runtime/core/clock.h"

namespace patchbay {

class MovedClock final : public Clock {
 public:
  TimeMs NowMs() const override { return now_ms_; }
  void Move(TimeMs by_ms) { now_ms_ += by_ms; }

 private:
  TimeMs now_ms_ = 1'000;
};

}  // namespace patchbay
