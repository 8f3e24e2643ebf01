#include "runtime/core/clock.h"

#include <chrono>

namespace patchbay {

std::int64_t SteadyNowNs() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

TimeMs SteadyClock::NowMs() const { return SteadyNowNs() / 1'000'000; }

std::int64_t WallClockSeconds() {
  return std::chrono::duration_cast<std::chrono::seconds>(
             std::chrono::system_clock::now().time_since_epoch())
      .count();
}

}  // namespace patchbay
