#include "scheduler/state/usage_ledger.h"

#include <string>

#include <gtest/gtest.h>

#include "scheduler/policy/limits.h"

namespace patchbay::scheduler {
namespace {

constexpr std::int64_t kHour = 3'600, kDay = 24 * kHour, kBegin = 1'700'000'000 / kHour * kHour;

Usage Cpu(std::int64_t us) { return {{us, 0, 0, 0}, {}}; }

std::string BytesOf(const UsageLedger& ledger) {
  WireWriter out;
  ledger.Encode(out);
  return out.Take();
}

std::int64_t CpuOf(const UsageLedger& ledger) {
  std::int64_t sum = 0;
  for (const auto& [key, usage] : ledger.rows()) sum += usage.counted.cpu_us;
  return sum;
}

TEST(UsageLedger, SumsUpByHourAndPayer) {
  UsageLedger ledger;
  const Payer payer{7, "radiology", "ann"};
  ledger.Take(kBegin + 1, payer, {{3, 2, 5, 4}, {}});
  ledger.Take(kBegin + kHour - 1, payer, {{10, 1, 1, 1}, {7, 0, 9, 0}});
  ledger.Take(kBegin + kHour, payer, Cpu(100));
  ledger.Take(kBegin + kHour, {8, "radiology", "ann"}, Cpu(1'000));
  ASSERT_EQ(ledger.rows().size(), 3u);
  const Usage first{{13, 3, 6, 5}, {7, 0, 9, 0}};
  EXPECT_EQ(ledger.rows().at({kBegin, payer}), first);
  EXPECT_EQ(CpuOf(ledger), 1'113);
}

TEST(UsageLedger, HasNoRowOfNothing) {
  UsageLedger ledger;
  ledger.Take(kBegin, {1, "", "ann"}, {});
  EXPECT_TRUE(ledger.rows().empty());
}

TEST(UsageLedger, FoldsJobsIntoUsersAfterAMonthAndDropsQuarters) {
  UsageLedger ledger;
  for (const JobId job : {1, 2}) ledger.Take(kBegin, {job, "", "ann"}, Cpu(10));
  ledger.Take(kBegin, {3, "", "bob"}, Cpu(5));
  ledger.Take(kBegin + 30 * kDay, {4, "", "ann"}, Cpu(1));
  EXPECT_EQ(ledger.rows().size(), 4u) << "not older than a month yet";
  ledger.Take(kBegin + 30 * kDay + kHour, {4, "", "ann"}, Cpu(1));
  ASSERT_EQ(ledger.rows().size(), 4u);
  EXPECT_EQ(ledger.rows().at({kBegin, {0, "", "ann"}}), Cpu(20));
  EXPECT_EQ(ledger.rows().at({kBegin, {0, "", "bob"}}), Cpu(5));
  ledger.Take(kBegin + 7, {1, "", "ann"}, Cpu(1));
  EXPECT_EQ(ledger.rows().at({kBegin, {0, "", "ann"}}), Cpu(21)) << "late, and folded at once";
  EXPECT_EQ(CpuOf(ledger), 28);
  ledger.Take(kBegin + 90 * kDay + kHour, {5, "", "ann"}, Cpu(1));
  EXPECT_EQ(CpuOf(ledger), 3) << "a quarter is over";
}

TEST(UsageLedger, FoldsSoonerThanItGrowsPastItsBounds) {
  UsageLedger ledger;
  const auto jobs = static_cast<JobId>(kMaxUsageRows);
  for (JobId job = 1; job <= jobs; ++job) ledger.Take(kBegin, {job, "", "ann"}, Cpu(1));
  EXPECT_EQ(ledger.rows().size(), kMaxUsageRows);
  ledger.Take(kBegin + kHour, {1, "", "ann"}, Cpu(1));
  EXPECT_EQ(ledger.rows().size(), 2u) << "the oldest hour is of users";
  EXPECT_EQ(CpuOf(ledger), static_cast<std::int64_t>(jobs) + 1);
}

TEST(UsageLedger, DropsTheOldestHoursOfTooManyUsers) {
  UsageLedger ledger;
  const std::string team(200'000, 't');
  for (int hour = 0; hour < 400; ++hour) {
    ledger.Take(kBegin + hour * kHour, {1, team, "ann"}, Cpu(1));
    EXPECT_LE(ledger.size_bytes(), kMaxUsageBytes);
  }
  EXPECT_GT(ledger.rows().size(), 300u);
  EXPECT_LT(ledger.rows().size(), 340u);
  EXPECT_EQ(std::get<0>(ledger.rows().rbegin()->first), kBegin + 399 * kHour);
}

TEST(UsageLedger, IsTheSameAfterDecoding) {
  UsageLedger ledger, other;
  ledger.Take(kBegin, {1, "", "ann"}, {{1, 2, 3, 4}, {5, 6, 7, 8}});
  ledger.Take(kBegin + 40 * kDay, {2, "", "bob"}, Cpu(9));
  const std::string bytes = BytesOf(ledger);
  WireReader in(bytes);
  ASSERT_TRUE(other.Decode(in) && in.Finished());
  EXPECT_EQ(BytesOf(other), bytes);
  EXPECT_EQ(other.size_bytes(), ledger.size_bytes());
  for (UsageLedger* each : {&ledger, &other}) each->Take(kBegin, {3, "", "ann"}, Cpu(1));
  EXPECT_EQ(BytesOf(other), BytesOf(ledger)) << "both know what is folded";
  WireReader cut(std::string_view(bytes).substr(0, bytes.size() - 1));
  UsageLedger damaged;
  EXPECT_FALSE(damaged.Decode(cut) && cut.Finished());
}

}  // namespace
}  // namespace patchbay::scheduler
