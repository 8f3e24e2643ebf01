#include <map>
#include <random>
#include <set>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "scheduler/policy/back_off.h"
#include "scheduler/policy/limits.h"
#include "scheduler/policy/pace.h"
#include "scheduler/policy/ready_queue.h"
#include "scheduler/policy/resources.h"
#include "scheduler/policy/solo_deaths.h"

namespace patchbay::scheduler {
namespace {

TEST(Retry, WrongInputIsNeverRetriedPassingTroubleIs) {
  using Code = absl::StatusCode;
  for (const Code code : {Code::kInvalidArgument, Code::kDataLoss, Code::kNotFound,
                          Code::kPermissionDenied, Code::kUnimplemented, Code::kOk}) {
    EXPECT_FALSE(IsRetryable(static_cast<int>(code))) << static_cast<int>(code);
  }
  for (const Code code : {Code::kUnavailable, Code::kResourceExhausted, Code::kDeadlineExceeded}) {
    EXPECT_TRUE(IsRetryable(static_cast<int>(code))) << static_cast<int>(code);
  }
}

TEST(Retry, BackOffDoublesUpToItsLimit) {
  EXPECT_EQ(BackOff(1, 500, 30'000), 500);
  EXPECT_EQ(BackOff(3, 500, 30'000), 2'000);
  EXPECT_EQ(BackOff(200, 500, 30'000), 30'000);
}

TEST(RunningCost, GoesOnAtThePaceOfTheLastReportAndNotForLong) {
  RunningCost cost(1'000);
  EXPECT_EQ(cost.By(5'000), 0) << "nothing is known of it";
  cost.Report(2'000, 500'000);
  EXPECT_EQ(cost.By(2'000), 500'000);
  EXPECT_EQ(cost.By(2'100), 550'000);
  EXPECT_EQ(cost.By(1'000), 500'000);
  cost.Report(3'000, 1'500'000);
  EXPECT_EQ(cost.By(3'500), 2'000'000) << "it has had the core alone since";
  EXPECT_EQ(cost.By(60'000), 3'500'000);
  cost.Report(4'000, 3'600'000'000);
  EXPECT_EQ(cost.By(4'100), 3'606'400'000) << "no task has more than 64 cores";
  cost.Report(4'000, 700'000);
  EXPECT_EQ(cost.By(4'100), 3'600'000'000) << "less than before is no news";
  EXPECT_EQ(RunningCost(1'000, 5'000).By(9'000), 5'000);
}

TEST(SoloDeaths, SigkillSaysLessThanACrash) {
  EXPECT_EQ(EndOf(SIGKILL), WorkerEnd::kKilled);
  for (const int status : {SIGSEGV, SIGABRT | 0x80, SIGBUS, SIGXCPU, 1 << 8, 0}) {
    EXPECT_EQ(EndOf(status), WorkerEnd::kCrashed) << status;
  }
  SoloDeaths deaths;
  deaths.Add(WorkerEnd::kUnrelated);
  for (std::uint32_t i = 0; i + 1 < kMaxSoloEnds; ++i) {
    EXPECT_FALSE(deaths.TooMany()) << i;
    deaths.Add(WorkerEnd::kKilled);
  }
  EXPECT_FALSE(deaths.TooMany());
  deaths.Add(WorkerEnd::kCrashed);
  EXPECT_TRUE(deaths.TooMany()) << "in all";
  SoloDeaths crashes;
  for (std::uint32_t i = 0; i < kMaxSoloDeaths; ++i) {
    EXPECT_FALSE(crashes.TooMany()) << i;
    crashes.Add(WorkerEnd::kCrashed);
  }
  EXPECT_TRUE(crashes.TooMany());
}

TEST(Pace, QueueDepthFollowsMeasuredTime) {
  TaskPace pace;
  EXPECT_EQ(pace.Of("unknown", 1).us, kUnknownTaskUs);
  pace.Measure("tiny", {100, 100, 1'000, 0});
  EXPECT_EQ(pace.Of("tiny", 1).us, 10);
  EXPECT_TRUE(QueueHasRoom(0, 0, 60'000'000)) << "an idle worker takes anything";
  EXPECT_FALSE(QueueHasRoom(1, 1'000'000, 1'000'000));
  EXPECT_TRUE(QueueHasRoom(kMaxQueueDepth - 1, 5'000, 10));
  EXPECT_FALSE(QueueHasRoom(kMaxQueueDepth, 5'000, 10));
}

TEST(Pace, AHeavierTaskIsExpectedToTakeAsMuchLonger) {
  TaskPace pace;
  pace.Measure("strip", {1, 1'000, 5'000, 0});
  EXPECT_EQ(pace.Of("strip", 1'000).us, 5'000);
  EXPECT_EQ(pace.Of("strip", 100'000).us, 500'000);
  EXPECT_EQ(pace.Of("strip", 10).us, 5'000) << "a light one is not queued deeper for it";
  EXPECT_FALSE(QueueHasRoom(1, 5'000, pace.Of("strip", 100'000).us));
  EXPECT_EQ(pace.Of("strip", ~std::uint64_t{0}).us, 3'600'000'000) << "and none overflows";
  pace.Measure("light", {1, 0, 5'000, 0});
  EXPECT_EQ(pace.Of("light", 7).us, 5'000);
}

TEST(Pace, TheProcessorTimeOfATaskIsNotTheTimeThatItTakes) {
  TaskPace pace;
  EXPECT_EQ(pace.Of("unknown", 1).cpu_us, kUnknownTaskUs);
  pace.Measure("strip", {2, 20, 8'000, 2'000});
  EXPECT_EQ(pace.Of("strip", 10).cpu_us, 1'000);
  EXPECT_EQ(pace.Of("strip", 30).cpu_us, 3'000);
  pace.Measure("strip", {1, 10, 4'000, 9'000});
  EXPECT_EQ(pace.Of("strip", 10).cpu_us, 2'000);
  EXPECT_EQ(pace.Of("strip", 10).us, 4'000);
}

TEST(Pace, ManyTasksAtOnceCountForMoreThanOne) {
  const auto after = [](std::uint32_t count) {
    TaskPace pace;
    pace.Measure("op", {1, 1, 800, 0});
    pace.Measure("op", {count, count, 0, 0});
    return pace.Of("op", 1).us;
  };
  EXPECT_EQ(after(3), 700) << "an eighth";
  EXPECT_EQ(after(4), 400) << "a half";
}

TEST(Pace, AQueueIsFilledToItsTargetAndNoFurther) {
  EXPECT_TRUE(QueueHasRoom(1, kQueueTargetUs - 10, 10));
  EXPECT_FALSE(QueueHasRoom(1, kQueueTargetUs - 9, 10));
}

TEST(Pace, TheOpThatWasNotMeasuredForLongestIsForgotten) {
  TaskPace pace;
  for (std::size_t i = 0; i < kMaxMeasuredOps; ++i) pace.Measure(StrCat("op", i), {1, 1, 5, 0});
  pace.Measure("op0", {1, 1, 5, 0});
  EXPECT_EQ(pace.Of("op1", 1).us, 5);
  pace.Measure("another", {1, 1, 7, 0});
  EXPECT_EQ(pace.Of("another", 1).us, 7);
  EXPECT_EQ(pace.Of("op0", 1).us, 5);
  EXPECT_EQ(pace.Of("op1", 1).us, kUnknownTaskUs);
  for (std::size_t i = 2; i < kMaxMeasuredOps; ++i) {
    EXPECT_EQ(pace.Of(StrCat("op", i), 1).us, 5) << i;
  }
}

TEST(Pace, ShortShardsAreQueuedDeeperWithinTheLimit) {
  ShardPace pace;
  EXPECT_EQ(pace.Depth(), kMinShardDepth);
  pace.Measure(1'000'000);
  EXPECT_EQ(pace.Depth(), 2u);
  ShardPace quick;
  quick.Measure(1'000);
  EXPECT_EQ(quick.Depth(), kMaxShardDepth);
}

TEST(Resources, WorkerOccupiesTheLargestOfItsTasks) {
  Occupancy occupancy;
  occupancy.Add({1000, 0, 10});
  occupancy.Add({500, 1, 20});
  EXPECT_EQ(occupancy.Occupied(), (Resources{1000, 1, 20}));
  occupancy.Remove({1000, 0, 10});
  EXPECT_EQ(occupancy.Occupied(), (Resources{500, 1, 20}));
  occupancy.Remove({500, 1, 20});
  EXPECT_EQ(occupancy.Occupied(), (Resources{0, 0, 0}));
}

bool Any(AccountId, const Resources&) { return true; }

class ReadyTasks : public testing::Test {
 protected:
  /// An account of the default team.
  AccountId Of(const std::string& user) { return fair.Of("", user); }

  FairShare fair;
  ReadyQueue queue{fair};
};

TEST_F(ReadyTasks, OrdersByPriorityThenJobThenArrival) {
  const Resources need{1, 0, 0};
  queue.Push({0, 1}, Of("ann"), need, {{1, 0}, 1});
  queue.Push({5, 3}, Of("ann"), need, {{3, 0}, 1});
  queue.Push({5, 2}, Of("ann"), need, {{2, 0}, 1});
  queue.Push({5, 2}, Of("ann"), need, {{2, 1}, 1});
  std::vector<TaskId> order;
  while (auto* lane = queue.Best(Any)) {
    order.push_back(queue.Pop(*lane).task);
  }
  EXPECT_EQ(order, (std::vector<TaskId>{{2, 0}, {2, 1}, {3, 0}, {1, 0}}));
  EXPECT_TRUE(queue.empty());
}

TEST_F(ReadyTasks, OfAJobsTasksTheLeastNeedGoesFirstAndOfAnOlderJobAnyNeed) {
  queue.Push({0, 1}, Of("ann"), {1000, 0, 0}, {{1, 0}, 1});
  queue.Push({0, 1}, Of("ann"), {500, 0, 0}, {{1, 1}, 1});
  queue.Push({0, 2}, Of("ann"), {250, 0, 0}, {{2, 0}, 1});
  std::vector<TaskId> order;
  while (auto* lane = queue.Best(Any)) {
    order.push_back(queue.Pop(*lane).task);
  }
  EXPECT_EQ(order, (std::vector<TaskId>{{1, 1}, {1, 0}, {2, 0}}));
}

TEST_F(ReadyTasks, CountsItsTasksAndHowOftenTheFirstWasSkipped) {
  for (std::uint32_t i = 0; i < 4; ++i) queue.Push({0, 1}, Of("ann"), {1, 0, 0}, {{1, i}, 1});
  EXPECT_EQ(queue.size(), 4u);
  ReadyQueue::Lane& lane = *queue.Best(Any);
  EXPECT_EQ(queue.Pop(lane, 2).task, (TaskId{1, 2}));
  EXPECT_EQ(queue.Pop(lane, 2).task, (TaskId{1, 3}));
  EXPECT_EQ(ReadyQueue::Head(lane).times_skipped, 2u);
  EXPECT_EQ(queue.size(), 2u);
  EXPECT_EQ(queue.Pop(lane).task, (TaskId{1, 0}));
  EXPECT_EQ(ReadyQueue::Head(lane).times_skipped, 0u);
  queue.Pop(lane);
  EXPECT_EQ(queue.size(), 0u);
}

TEST_F(ReadyTasks, NamesAccountsWhoseLanesHaveAnotherFirstTask) {
  const AccountId ann = Of("ann"), bob = Of("bob");
  queue.Push({0, 2}, ann, {1, 0, 0}, {{2, 0}, 1});
  queue.Push({0, 3}, bob, {1, 0, 0}, {{3, 0}, 1});
  EXPECT_EQ(queue.TakeFresh(), (std::vector<AccountId>{ann, bob}));
  queue.Push({0, 2}, ann, {1, 0, 0}, {{2, 1}, 1});
  queue.Push({0, 4}, bob, {1, 0, 0}, {{4, 0}, 1});
  EXPECT_TRUE(queue.TakeFresh().empty()) << "no worker could take the tasks before them";
  queue.Push({5, 5}, bob, {1, 0, 0}, {{5, 0}, 1});
  EXPECT_EQ(queue.TakeFresh(), (std::vector<AccountId>{bob}));
  queue.Push({0, 1}, ann, {2, 0, 0}, {{1, 0}, 1});
  EXPECT_EQ(queue.TakeFresh(), (std::vector<AccountId>{ann})) << "another need is another lane";
  EXPECT_EQ(queue.BestAmong({bob}, Any)->account, bob);
}

TEST_F(ReadyTasks, DropsTheTasksOfAJobWhateverTheyNeed) {
  queue.Push({5, 1}, Of("ann"), {1, 0, 0}, {{1, 0}, 1});
  queue.Push({5, 1}, Of("ann"), {1, 0, 0}, {{1, 1}, 1});
  queue.Push({5, 1}, Of("ann"), {2, 0, 0}, {{1, 2}, 1});
  queue.Push({5, 2}, Of("ann"), {1, 0, 0}, {{2, 0}, 1});
  queue.Drop({5, 3}, Of("ann"));
  EXPECT_EQ(queue.size(), 4u);
  queue.Drop({5, 1}, Of("ann"));
  EXPECT_EQ(queue.size(), 1u);
  EXPECT_EQ(queue.Pop(*queue.Best(Any)).task, (TaskId{2, 0}));
  EXPECT_TRUE(queue.empty());
}

/// A need unlike those of other numbers.
Resources Need(std::uint32_t number) { return {1 + number, 0, 0}; }

class NeedsOfOneKey : public ReadyTasks {
 protected:
  ~NeedsOfOneKey() override { EXPECT_EQ(queue.Check(), absl::OkStatus()); }

  /// Job and task have the number; the need may be another's.
  bool Push(std::uint32_t number, const std::string& key = "ann") {
    return queue.Push({0, number}, Of(key), Need(number), {{number, 0}, 1});
  }
  void Fill() {
    for (std::uint32_t i = 0; i < kMaxResourceShapes; ++i) ASSERT_TRUE(Push(i)) << i;
  }
  /// The job of the task that was next for a worker that may run those of that need alone; 0 when
  /// there was none.
  JobId Pop(const Resources& only) {
    ReadyQueue::Lane* lane =
        queue.Best([&](AccountId, const Resources& need) { return need == only; });
    return lane == nullptr ? 0 : queue.Pop(*lane).task.job;
  }
};

TEST_F(NeedsOfOneKey, WaitAsidePastTheLimitUntilOneOfItsLanesIsEmpty) {
  Fill();
  EXPECT_FALSE(Push(200));
  EXPECT_FALSE(Push(100)) << "an older job, of another need";
  EXPECT_EQ(queue.size(), kMaxResourceShapes + 2);
  EXPECT_EQ(Pop(Need(100)), 0u);
  EXPECT_TRUE(queue.Push({0, 300}, Of("ann"), Need(7), {{300, 0}, 1})) << "a need that has a lane";
  EXPECT_EQ(Pop(Need(7)), 7u);
  EXPECT_EQ(Pop(Need(100)), 0u) << "the lane has another of its tasks";
  EXPECT_EQ(Pop(Need(7)), 300u);
  EXPECT_EQ(Pop(Need(200)), 0u);
  EXPECT_EQ(Pop(Need(100)), 100u);
  EXPECT_EQ(Pop(Need(200)), 200u);
}

TEST_F(NeedsOfOneKey, HoldUpNoOtherKey) {
  Fill();
  for (std::uint32_t i = 0; i < kMaxResourceShapes; ++i) EXPECT_TRUE(Push(1'000 + i, "ben")) << i;
  EXPECT_FALSE(Push(100));
  EXPECT_FALSE(Push(1'100, "ben"));
  EXPECT_EQ(Pop(Need(1'003)), 1'003u);
  EXPECT_EQ(Pop(Need(1'100)), 1'100u);
  EXPECT_EQ(Pop(Need(100)), 0u) << "the room was the other's";
}

TEST_F(NeedsOfOneKey, LeaveALaneThatOthersGoOnUsing) {
  Fill();
  EXPECT_FALSE(Push(100));
  EXPECT_TRUE(queue.Push({0, 500}, Of("ben"), Need(7), {{500, 0}, 1}));
  EXPECT_EQ(Pop(Need(7)), 7u);
  EXPECT_EQ(Pop(Need(100)), 100u);
  EXPECT_EQ(Pop(Need(7)), 500u);
}

TEST_F(NeedsOfOneKey, GoWithTheirJobFromLanesAndFromAside) {
  Fill();
  EXPECT_FALSE(Push(100));
  EXPECT_FALSE(Push(200));
  queue.Drop({0, 100}, Of("ann"));
  EXPECT_EQ(queue.size(), kMaxResourceShapes + 1);
  queue.Drop({0, 7}, Of("ann"));
  EXPECT_EQ(queue.size(), kMaxResourceShapes);
  EXPECT_EQ(Pop(Need(100)), 0u);
  EXPECT_EQ(Pop(Need(200)), 200u);
}

TEST_F(NeedsOfOneKey, AreAllRunOnceWhateverComesAndGoes) {
  std::mt19937 random(1);
  std::set<JobId> queued;
  std::map<JobId, std::string> keys;
  for (std::uint32_t number = 1; number < 20'000; ++number) {
    const std::uint32_t draw = random() % 16;
    if (draw < 10) {
      const std::string key = StrCat("key ", random() % 3);
      queue.Push({static_cast<std::int32_t>(random() % 2), number}, Of(key), Need(random() % 150),
                 {{number, 0}, 1});
      queued.insert(number);
      keys[number] = key;
    } else if (draw == 10 && !queued.empty()) {
      const auto chosen = queued.lower_bound(random() % number);
      if (chosen == queued.end()) continue;
      for (const std::int32_t priority : {0, 1}) queue.Drop({priority, *chosen}, Of(keys[*chosen]));
      queued.erase(chosen);
    } else if (ReadyQueue::Lane* lane = queue.Best(Any)) {
      EXPECT_EQ(queued.erase(queue.Pop(*lane).task.job), 1u);
    }
    ASSERT_EQ(queue.size(), queued.size()) << number;
    if (number % 64 == 0) ASSERT_EQ(queue.Check(), absl::OkStatus()) << number;
  }
  EXPECT_GT(queue.size(), 3 * kMaxResourceShapes) << "nothing waited aside";
  while (ReadyQueue::Lane* lane = queue.Best(Any)) {
    EXPECT_EQ(queued.erase(queue.Pop(*lane).task.job), 1u);
  }
  EXPECT_TRUE(queued.empty());
}

}  // namespace
}  // namespace patchbay::scheduler
