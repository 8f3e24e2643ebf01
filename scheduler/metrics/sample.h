// Everything that one look at the scheduler's metrics shows.
#pragma once

#include <cstdint>

#include "runtime/core/clock.h"
#include "scheduler/policy/durations.h"
#include "scheduler/state/measures.h"

namespace patchbay::scheduler {

/// Durations of the core's turns.
using TurnTimes = Durations<100, 1'000, 5'000, 20'000, 100'000, 1'000'000>;

/// Measures one turn, from its construction to its end.
class Turn {
 public:
  explicit Turn(TurnTimes& times) : times_(times), begun_ns_(SteadyNowNs()) {}
  ~Turn() { times_.Add(SteadyNowNs() - begun_ns_); }
  Turn(const Turn&) = delete;
  Turn& operator=(const Turn&) = delete;

 private:
  TurnTimes& times_;
  const std::int64_t begun_ns_;
};

struct Sample {
  ClusterMeasures cluster;
  TurnTimes turns;
  std::int64_t clock_seconds = 0;
  std::uint64_t journal_bytes = 0;     ///< records that are not written yet
  std::uint64_t memory_bytes = 0;      ///< resident
  std::uint64_t state_free_bytes = 0;  ///< free where the journal is
};

}  // namespace patchbay::scheduler
