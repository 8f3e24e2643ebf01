// Everything that one look at the scheduler's metrics shows.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "runtime/core/clock.h"
#include "scheduler/state/measures.h"

namespace patchbay::scheduler {

/// Durations of the core's turns, counted by size. Not thread-safe.
struct TurnTimes {
  static constexpr std::array<double, 6> kBoundsSeconds = {1e-4, 1e-3, 5e-3, 2e-2, 0.1, 1};

  void Add(std::int64_t ns) {
    std::size_t i = 0;
    while (i < kBoundsSeconds.size() && static_cast<double>(ns) > kBoundsSeconds[i] * 1e9) ++i;
    ++counts[i];
    sum_ns += ns;
  }

  std::array<std::uint64_t, kBoundsSeconds.size() + 1> counts{};  ///< the last: longer ones
  std::int64_t sum_ns = 0;
};

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
