// Charges for work, and who sees them.
#include <limits>

#include <gtest/gtest.h>

#include "scheduler/policy/limits.h"
#include "scheduler/state/usage_ledger.h"
#include "tests/scheduler/core/streaming.h"

namespace patchbay::scheduler {
namespace {

constexpr protocol::WorkCost kCost{5'000, 100, 1'000, 2'000};

class UsageOfTasks : public testing::Test {
 protected:
  UsageOfTasks() {
    rig.AddAgent();
    rig.AddWorker();
    job = rig.Submit("key");
    lease = rig.Granted().at(0);
  }
  void Report(const protocol::TaskLease& of, const protocol::WorkCost& cost, Outcome outcome = {}) {
    protocol::TasksFinished finished;
    finished.items.push_back({of.lease, of.task, std::move(outcome), "", {}, 0, 0, cost});
    rig.Tell(CoreRig::kWorker0, finished);
  }
  Usage Sum(PeerId asker = CoreRig::kOps, std::int64_t since = 0) {
    Usage sum;
    rig.Tell(asker, protocol::FetchUsage{since, 0});
    const auto* fetched = rig.Find<protocol::UsageFetched>();
    if (fetched == nullptr) return sum;
    for (const protocol::UsageRow& row : fetched->rows) {
      EXPECT_EQ(row.user, "ops");
      Add(sum.counted, row.counted);
      Add(sum.wasted, row.wasted);
    }
    return sum;
  }

  CoreRig rig;
  JobId job = 0;
  protocol::TaskLease lease;
};

TEST_F(UsageOfTasks, ACommitIsChargedOnceAndOutlivesARestart) {
  rig.Pass(1'000);
  Report(lease, kCost);
  Report(lease, kCost);
  EXPECT_EQ(Sum(), (Usage{kCost, {}}));
  rig.Restart();
  EXPECT_EQ(Sum(), (Usage{kCost, {}}));
  const std::string snapshot = rig.core().EncodeSnapshot();
  Core other;
  ASSERT_TRUE(other.LoadSnapshot(rig.core().last_sequence(), snapshot).ok());
  EXPECT_EQ(other.DurableStateHash(), rig.core().DurableStateHash());
}

TEST_F(UsageOfTasks, AFailedAttemptIsWastedAndItsRetryCounts) {
  rig.Pass(1'000);
  Report(lease, kCost, Failure(absl::StatusCode::kUnavailable));
  EXPECT_EQ(Sum(), (Usage{{}, kCost}));
  std::vector<protocol::TaskLease> again;
  for (int i = 0; i < 20 && again.empty(); ++i) {
    rig.Pass(100);
    again = rig.Granted();
  }
  ASSERT_EQ(again.size(), 1u);
  Report(again[0], {7, 0, 0, 0});
  EXPECT_EQ(Sum(), (Usage{{7, 0, 0, 0}, kCost}));
}

TEST_F(UsageOfTasks, ATaskOfBeforeThatItsWorkerLostCountsOnceAndIsNotWastedToo) {
  rig.Restart();
  rig.AddAgent();
  rig.AddWorker(0, 100, {{lease.lease, false, lease.task, 0, {}}});
  rig.Pass(1'000);
  rig.Leave(CoreRig::kWorker0);
  rig.AddWorker(0, 100);  // it does not name the lease: the report was on its way
  Report(lease, kCost);
  Report(lease, kCost);
  EXPECT_EQ(Sum(), (Usage{kCost, {}}));
}

TEST_F(UsageOfTasks, ACancelledTaskIsWastedOnceItsWorkerHasDroppedIt) {
  rig.Pass(1'000);
  rig.Tell(CoreRig::kOps, protocol::CancelJob{job});
  EXPECT_EQ(Sum(), Usage{});
  Report(lease, kCost, Failure(absl::StatusCode::kCancelled));
  Report(lease, kCost, Failure(absl::StatusCode::kCancelled));
  EXPECT_EQ(Sum(), (Usage{{}, kCost}));
}

TEST_F(UsageOfTasks, AWorkerThatEndedIsNotChargedLater) {
  rig.Pass(1'000);
  rig.Exited(0, 100);
  Report(lease, kCost);
  EXPECT_EQ(Sum(), Usage{});
}

TEST_F(UsageOfTasks, ChargesAreJournalledWithinASecond) {
  rig.Pass(1'000);
  Report(lease, kCost, Failure(absl::StatusCode::kDataLoss));
  const std::size_t records = rig.disk().size();
  rig.Pass(1'000);
  EXPECT_EQ(rig.disk().size(), records + 1);
  rig.Pass(3'000);
  EXPECT_EQ(rig.disk().size(), records + 1) << "nothing more to charge";
  rig.Restart();
  EXPECT_EQ(Sum(), (Usage{{}, kCost}));
}

TEST_F(UsageOfTasks, AbsurdCostsAreCutToTheTimeThatTheLeaseHad) {
  rig.Pass(2'000);
  constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max();
  Report(lease, {kMost, kMost, UINT64_MAX, UINT64_MAX});
  const Usage sum = Sum();
  EXPECT_EQ(sum.counted.cpu_us, 2'100'000 * (1 + kExtraThreads));
  EXPECT_EQ(sum.counted.gpu_us, 2'100'000);
  EXPECT_EQ(sum.counted.bytes_read, kMostLeaseBytes);
  EXPECT_EQ(sum.counted.bytes_delivered, kMostLeaseBytes);
}

TEST_F(UsageOfTasks, NegativeCostsAreNoneAndSaidOnceAWorker) {
  rig.Pass(1'000);
  Report(lease, {-5, std::numeric_limits<std::int64_t>::min(), 1, 0});
  EXPECT_EQ(Sum(), (Usage{{0, 0, 1, 0}, {}}));
  const JobId next = rig.Submit("next");
  Report(rig.Granted().at(0), {-5, 0, 0, 0});
  int said = 0;
  for (const JobId id : {job, next}) {
    rig.Tell(CoreRig::kOps, protocol::FetchLogs{id, 0});
    for (const auto& line : rig.Find<protocol::LogsFetched>()->lines) {
      said += line.text.find("they are cut") == std::string::npos ? 0 : 1;
    }
  }
  EXPECT_EQ(said, 1);
}

TEST_F(UsageOfTasks, ASubmitterSeesItsOwnRowsOfTheHoursThatItAsksFor) {
  rig.Pass(1'000);
  Report(lease, kCost);
  rig.Join(60, Role::kSubmitter, "other");
  EXPECT_EQ(Sum(60), Usage{});
  rig.Join(61, Role::kSubmitter, "ops");
  EXPECT_EQ(Sum(61), (Usage{kCost, {}}));
  EXPECT_EQ(Sum(61, 1'700'000'003), (Usage{kCost, {}})) << "within the hour";
  EXPECT_EQ(Sum(61, 1'700'000'000 + 7'200), Usage{});
  rig.Tell(CoreRig::kOps, protocol::FetchUsage{0, 1});
  const auto* rest = rig.Find<protocol::UsageFetched>();
  ASSERT_NE(rest, nullptr);
  EXPECT_TRUE(rest->rows.empty() && rest->complete);
}

class UsageOfShards : public Streaming {
 protected:
  void SetUp() override {
    Streaming::SetUp();
    Attach(5, 1);
    shards = rig.Shards();
    ASSERT_GE(shards.size(), 2u);
    rig.Pass(500, {CoreRig::kAgent, CoreRig::kWorker0, CoreRig::kTrainer0});
  }
  void Cost(const protocol::ShardLease& lease, absl::StatusCode code = absl::StatusCode::kOk) {
    protocol::ShardsReturned returned;
    returned.items.push_back(
        {lease.lease, job, lease.shard, {static_cast<int>(code), "why"}, kCost});
    rig.Tell(CoreRig::kWorker0, returned);
  }
  Usage Sum() {
    Usage sum;
    rig.Tell(CoreRig::kOps, protocol::FetchUsage{});
    for (const auto& row : rig.Find<protocol::UsageFetched>()->rows) {
      Add(sum.counted, row.counted);
      Add(sum.wasted, row.wasted);
    }
    return sum;
  }
  std::vector<protocol::ShardLease> shards;
};

TEST_F(UsageOfShards, AShardIsChargedWhenItCountedAndItsCostIsKnownInEitherOrder) {
  Cost(shards[0]);
  EXPECT_EQ(Sum(), Usage{});
  Count(shards[0]);
  EXPECT_EQ(Sum(), (Usage{kCost, {}}));
  Count(shards[1]);
  EXPECT_EQ(Sum(), (Usage{kCost, {}}));
  Cost(shards[1]);
  Cost(shards[1]);
  Cost(shards[0]);
  EXPECT_EQ(Sum().counted.cpu_us, 2 * kCost.cpu_us);
  EXPECT_EQ(Sum().wasted, protocol::WorkCost{});
  const Usage before = Sum();
  rig.Restart();
  EXPECT_EQ(Sum(), before);
}

TEST_F(UsageOfShards, AFencedShardIsWastedAndTheNextAttemptCounts) {
  Cost(shards[0], absl::StatusCode::kUnavailable);
  const auto* fence = rig.FindFor<protocol::FenceShard>(CoreRig::kTrainer0);
  ASSERT_NE(fence, nullptr);
  const protocol::FenceShard fenced = *fence;
  EXPECT_EQ(Sum(), Usage{});
  Fenced(fenced, 0);
  EXPECT_EQ(Sum(), (Usage{{}, kCost}));
}

TEST_F(UsageOfShards, AShardThatCountedAfterAllWhileItWasFencedIsNotWasted) {
  Cost(shards[0], absl::StatusCode::kUnavailable);
  const auto* fence = rig.FindFor<protocol::FenceShard>(CoreRig::kTrainer0);
  ASSERT_NE(fence, nullptr);
  Count(shards[0]);
  EXPECT_EQ(Sum(), (Usage{kCost, {}}));
}

TEST_F(UsageOfShards, WhatACancelledStreamHadInTheMakingIsWasted) {
  rig.Tell(CoreRig::kOps, protocol::CancelJob{job});
  Cost(shards[0], absl::StatusCode::kCancelled);
  EXPECT_EQ(Sum(), (Usage{{}, kCost}));
}

}  // namespace
}  // namespace patchbay::scheduler
