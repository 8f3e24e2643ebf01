// Durations for histograms.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace patchbay::scheduler {

/// Durations, counted by size. Not thread-safe. The bounds are in microseconds, and rise.
template <std::int64_t... BoundsUs>
struct Durations {
  static constexpr std::array kBoundsUs = {BoundsUs...};

  void Add(std::int64_t ns) {
    std::size_t i = 0;
    while (i < kBoundsUs.size() && ns > kBoundsUs[i] * 1000) ++i;
    ++counts[i];
    sum_ns += ns;
  }

  std::array<std::uint64_t, kBoundsUs.size() + 1> counts{};  ///< the last: longer ones
  std::int64_t sum_ns = 0;
};

}  // namespace patchbay::scheduler
