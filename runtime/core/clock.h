// Clocks. Time is passed as a value or as a Clock; only main uses the system clock.
#pragma once

#include <cstdint>

namespace patchbay {

/// Monotonic milliseconds since an arbitrary start. Virtual in the simulator.
using TimeMs = std::int64_t;

/// A source of time that does not go back. Implementations may be asked from any thread.
class Clock {
 public:
  virtual ~Clock() = default;
  virtual TimeMs NowMs() const = 0;
};

/// CLOCK_MONOTONIC.
class SteadyClock final : public Clock {
 public:
  TimeMs NowMs() const override;
};

/// Monotonic nanoseconds, for durations that are reported (throughput, stall).
std::int64_t SteadyNowNs();

/// Seconds since 1970, for display and for the journal.
std::int64_t WallClockSeconds();

}  // namespace patchbay
