#include "scheduler/state/drop_reports.h"

#include <gtest/gtest.h>

#include "scheduler/policy/limits.h"

namespace patchbay::scheduler {
namespace {

TEST(DropReports, AreKeptOfSoManyTrainersAndTheOldestJobsGo) {
  DropReports dropped;
  const auto take = [&](JobId job, std::uint32_t rank) {
    dropped.Take({job, rank, {{"10.0.0.7", "no key", 1, 1000}}});
  };
  for (std::uint32_t rank = 0; rank < 2; ++rank) take(7, rank);
  for (JobId job = 8; job < 6 + kMaxTrainersWithDrops; ++job) take(job, 0);
  take(9, 0);
  EXPECT_EQ(dropped.reports().size(), kMaxTrainersWithDrops) << "in place of what it said before";
  EXPECT_EQ(dropped.reports().begin()->first, (std::pair<JobId, std::uint32_t>{7, 0}));
  take(1'000, 0);
  EXPECT_EQ(dropped.reports().size(), kMaxTrainersWithDrops);
  EXPECT_EQ(dropped.reports().begin()->first, (std::pair<JobId, std::uint32_t>{7, 1}));
  EXPECT_EQ(dropped.reports().count({1'000, 0}), 1u);
}

}  // namespace
}  // namespace patchbay::scheduler
