// Timing of queued GPU work, for the GPU benches.
#pragma once

#include <algorithm>
#include <chrono>
#include <functional>
#include <vector>

#include "runtime/core/status.h"
#include "runtime/memory/gpu.h"

namespace patchbay::bench {

/// Seconds that one call of `queue` takes the GPU: the median of nine rounds of four calls, each
/// round from the first call to the end of all work of the stream. One round before warms up.
inline StatusOr<double> MedianSeconds(const memory::OwnedGpuStream& stream,
                                      const std::function<Status(memory::GpuStream)>& queue) {
  constexpr int kRounds = 9, kCallsOfRound = 4;
  std::vector<double> rounds;
  for (int round = -1; round < kRounds; ++round) {
    const auto begin = std::chrono::steady_clock::now();
    for (int i = 0; i < kCallsOfRound; ++i) PB_RETURN_IF_ERROR(queue(stream.get()));
    PB_RETURN_IF_ERROR(stream.WaitSync());
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
    if (round >= 0) rounds.push_back(took.count() / kCallsOfRound);
  }
  std::nth_element(rounds.begin(), rounds.begin() + kRounds / 2, rounds.end());
  return rounds[kRounds / 2];
}

}  // namespace patchbay::bench
