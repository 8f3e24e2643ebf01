// Percentiles of durations beside those of the sorted list.
#include "runtime/core/duration_counts.h"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <random>
#include <vector>

#include "gtest/gtest.h"

namespace patchbay {
namespace {

TEST(DurationCounts, APercentileIsAtMostAnEighthAboveTheDurationOfItsRank) {
  std::mt19937_64 random(7);
  std::vector<std::int64_t> all;
  DurationCounts counts;
  for (int i = 0; i < 10'000; ++i) {
    all.push_back(static_cast<std::int64_t>(random() >> (random() % 63 + 1)));
    counts.Add(all.back());
  }
  std::sort(all.begin(), all.end());
  for (const std::size_t percent : {1u, 50u, 90u, 99u, 100u}) {
    const std::int64_t exact = all[percent * all.size() / 100 - 1];
    EXPECT_GE(counts.Percentile(static_cast<double>(percent)), exact) << percent;
    EXPECT_LE(counts.Percentile(static_cast<double>(percent)) - exact, exact / 8) << percent;
  }
}

TEST(DurationCounts, TakesEveryDuration) {
  DurationCounts counts;
  EXPECT_EQ(counts.Percentile(99), 0) << "of none";
  counts.Add(-5);  // a clock that was set back
  EXPECT_EQ(counts.Percentile(50), 0);
  counts.Add(std::numeric_limits<std::int64_t>::max());
  EXPECT_EQ(counts.Percentile(50), 0);
  EXPECT_EQ(counts.Percentile(100), std::numeric_limits<std::int64_t>::max());
}

}  // namespace
}  // namespace patchbay
