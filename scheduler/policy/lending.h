// Cores of guarantees that other teams hold, and the time until their owners have them back.
#pragma once

#include <cstdint>

#include "runtime/core/clock.h"
#include "scheduler/policy/durations.h"

namespace patchbay::scheduler {

/// Cores of a team, in thousandths. The sums of lent and of borrowed cores are equal.
struct TeamLending {
  std::uint64_t guaranteed_millis = 0;  ///< in force
  std::uint64_t lent_millis = 0;        ///< guaranteed to it, held by others
  std::uint64_t borrowed_millis = 0;    ///< guaranteed to others, held by it
  std::uint64_t reclaims = 0;           ///< times that a core came back for which it waited
};

/// The goal is 0.25 s, and 1 s at most; a long task that ends by itself takes longer.
using ReclaimTimes = Durations<10'000, 50'000, 100'000, 250'000, 500'000, 1'000'000, 5'000'000,
                               30'000'000, 120'000'000>;

/// The wait of a team that has work and is a core below its guarantee while no core is free. It
/// lasts until the guarantee is met or nothing waits.
struct ReclaimWait {
  static constexpr TimeMs kNotYet = -1;
  TimeMs since = kNotYet;         ///< kNotYet: since the event that is handled
  std::uint64_t most_millis = 0;  ///< held meanwhile: its own work changes cores
};

}  // namespace patchbay::scheduler
