// Durations counted by size, for percentiles of many of them in a fixed memory.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>

namespace patchbay {

/// Each power of two is divided into eight classes, so that a percentile is at most an eighth above
/// the duration that it stands for. Not thread-safe.
class DurationCounts {
 public:
  void Add(std::int64_t ns) {
    ++counts_[ClassOf(static_cast<std::uint64_t>(std::max<std::int64_t>(ns, 0)))];
    ++total_;
  }
  /// The longest duration of the class that `percent` of all reach into, in nanoseconds; 0 of none.
  std::int64_t Percentile(double percent) const {
    const auto rank =
        static_cast<std::uint64_t>(std::ceil(percent / 100 * static_cast<double>(total_)));
    std::uint64_t seen = 0;
    for (std::size_t i = 0; i < counts_.size(); ++i) {
      seen += counts_[i];
      if (seen > 0 && seen >= rank) return LongestOf(i);
    }
    return 0;
  }

 private:
  static constexpr int kBits = 3;  ///< classes of a power of two, as bits
  static constexpr std::size_t kClasses = std::size_t{1} << kBits;

  static std::size_t ClassOf(std::uint64_t ns) {
    if (ns < kClasses) return ns;
    const int shift = std::bit_width(ns) - 1 - kBits;
    return (static_cast<std::size_t>(shift) + 1) * kClasses + ((ns >> shift) & (kClasses - 1));
  }
  static std::int64_t LongestOf(std::size_t index) {
    if (index < kClasses) return static_cast<std::int64_t>(index);
    const std::size_t shift = index / kClasses - 1;
    return static_cast<std::int64_t>(((kClasses + index % kClasses + 1) << shift) - 1);
  }

  std::array<std::uint64_t, (64 - kBits) * kClasses> counts_{};
  std::uint64_t total_ = 0;
};

}  // namespace patchbay
