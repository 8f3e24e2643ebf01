// The shares of a stream's time, from sums.
#include "runtime/client/stream_breakdown.h"

#include <gtest/gtest.h>

namespace patchbay::client {
namespace {

TEST(StreamBreakdown, DividesTheWaitAsTheWorkersTimeWas) {
  StreamStats stats;
  stats.batches = 10;
  stats.patches = 80;
  stats.wall_s = 4;
  stats.wait_s = 1;
  stats.stall_fraction = 0.2;
  // Two batches lie in the ring: the sums are over 96 patches.
  stats.stages.Add({1'000'000, 2'000'000, 0, 0}, 48);
  stats.stages.Add({200'000, 400'000, 1'200'000, 0}, 48);
  const auto shares = BreakdownOf(stats);
  EXPECT_EQ(shares[0].name, "storage");
  EXPECT_DOUBLE_EQ(shares[0].fraction, 0.2 * 1.2 / 4.8);
  EXPECT_DOUBLE_EQ(shares[0].s_per_batch, 1.2 / 96 * 8);
  EXPECT_DOUBLE_EQ(shares[1].fraction, 0.2 * 2.4 / 4.8);
  EXPECT_DOUBLE_EQ(shares[2].s_per_batch, 1.2 / 96 * 8);
  EXPECT_EQ(shares[3].name, "transfer");
  EXPECT_EQ(shares[3].fraction, 0);
  EXPECT_EQ(shares[4].name, "trainer");
  EXPECT_DOUBLE_EQ(shares[4].fraction, 0.8);
  EXPECT_DOUBLE_EQ(shares[4].s_per_batch, 0.3);
  double sum = 0;
  for (const StageShare& share : shares) sum += share.fraction;
  EXPECT_DOUBLE_EQ(sum, 1);
}

TEST(StreamBreakdown, IsAllZeroBeforeTheFirstBatch) {
  for (const StageShare& share : BreakdownOf({})) {
    EXPECT_EQ(share.fraction, 0);
    EXPECT_EQ(share.s_per_batch, 0);
  }
}

TEST(StageTimes, StayInTheirRange) {
  EXPECT_EQ(ToStageUs(-5'000), 0u);
  EXPECT_EQ(ToStageUs(999), 0u);
  EXPECT_EQ(ToStageUs(2'500'000), 2'500u);
  EXPECT_EQ(ToStageUs(std::int64_t{5'000'000} * 1'000'000'000), 0xFFFFFFFFu);
}

}  // namespace
}  // namespace patchbay::client
