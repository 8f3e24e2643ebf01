#include <gtest/gtest.h>

#include "runtime/cli/command.h"
#include "runtime/cli/jobs/usage_table.h"

namespace patchbay::cli {
namespace {

TEST(UsageRows, AreSummedUpByTeamUserAndJob) {
  const std::vector<protocol::UsageRow> rows = {{3'600, "b", "zoe", 4, {1, 0, 0, 0}, {}},
                                                {3'600, "a", "ann", 1, {10, 1, 2, 3}, {4, 0, 5, 0}},
                                                {7'200, "a", "ann", 1, {20, 1, 2, 3}, {4, 0, 5, 0}},
                                                {7'200, "a", "bob", 2, {100, 0, 0, 0}, {}}};
  const auto jobs = SumsBy("job", rows);
  ASSERT_EQ(jobs.size(), 3u);
  EXPECT_EQ(jobs[0].job, 1u);
  EXPECT_EQ(jobs[0].counted, (protocol::WorkCost{30, 2, 4, 6}));
  EXPECT_EQ(jobs[0].wasted, (protocol::WorkCost{8, 0, 10, 0}));
  const auto users = SumsBy("user", rows);
  ASSERT_EQ(users.size(), 3u);
  EXPECT_EQ(users[1].user, "bob");
  const auto teams = SumsBy("team", rows);
  ASSERT_EQ(teams.size(), 2u);
  EXPECT_EQ(teams[0].counted.cpu_us, 130);
  EXPECT_EQ(teams[0].user, "");
}

TEST(UsageSince, TakesHoursDaysAndDates) {
  constexpr std::int64_t kNow = 1'800'000'000;
  EXPECT_EQ(TimeOf("24h", kNow).value_or(0), kNow - 86'400);
  EXPECT_EQ(TimeOf("7d", kNow).value_or(0), kNow - 7 * 86'400);
  const std::int64_t day = TimeOf("2026-11-28", kNow).value_or(0);
  EXPECT_EQ(day - TimeOf("2026-11-27", kNow).value_or(0), 86'400);
  for (const char* bad : {"", "7", "h", "-3h", "7 d", "7dd", "2026-11", "2026-11-27x", "99999d"}) {
    EXPECT_TRUE(IsUsageError(TimeOf(bad, kNow).status())) << bad;
  }
}

}  // namespace
}  // namespace patchbay::cli
