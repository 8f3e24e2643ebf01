#include <gtest/gtest.h>

#include "scheduler/policy/limits.h"
#include "scheduler/policy/pace.h"
#include "scheduler/policy/ready_queue.h"
#include "scheduler/policy/resources.h"
#include "scheduler/policy/retry.h"
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
  EXPECT_EQ(pace.EstimateUs("unknown", 1), kUnknownTaskUs);
  pace.Measure("tiny", 1'000, 100, 100);
  EXPECT_EQ(pace.EstimateUs("tiny", 1), 10);
  EXPECT_TRUE(QueueHasRoom(0, 0, 60'000'000)) << "an idle worker takes anything";
  EXPECT_FALSE(QueueHasRoom(1, 1'000'000, 1'000'000));
  EXPECT_TRUE(QueueHasRoom(kMaxQueueDepth - 1, 5'000, 10));
  EXPECT_FALSE(QueueHasRoom(kMaxQueueDepth, 5'000, 10));
}

TEST(Pace, AHeavierTaskIsExpectedToTakeAsMuchLonger) {
  TaskPace pace;
  pace.Measure("strip", 5'000, 1, 1'000);
  EXPECT_EQ(pace.EstimateUs("strip", 1'000), 5'000);
  EXPECT_EQ(pace.EstimateUs("strip", 100'000), 500'000);
  EXPECT_EQ(pace.EstimateUs("strip", 10), 5'000) << "a light one is not queued deeper for it";
  EXPECT_FALSE(QueueHasRoom(1, 5'000, pace.EstimateUs("strip", 100'000)));
  EXPECT_EQ(pace.EstimateUs("strip", ~std::uint64_t{0}), 3'600'000'000) << "and none overflows";
  pace.Measure("light", 5'000, 1, 0);
  EXPECT_EQ(pace.EstimateUs("light", 7), 5'000);
}

TEST(Pace, ManyTasksAtOnceCountForMoreThanOne) {
  const auto after = [](std::uint32_t count) {
    TaskPace pace;
    pace.Measure("op", 800, 1, 1);
    pace.Measure("op", 0, count, count);
    return pace.EstimateUs("op", 1);
  };
  EXPECT_EQ(after(3), 700) << "an eighth";
  EXPECT_EQ(after(4), 400) << "a half";
}

TEST(Pace, AQueueIsFilledToItsTargetAndNoFurther) {
  EXPECT_TRUE(QueueHasRoom(1, kQueueTargetUs - 10, 10));
  EXPECT_FALSE(QueueHasRoom(1, kQueueTargetUs - 9, 10));
}

TEST(Pace, MeasuredOpsAreBounded) {
  TaskPace pace;
  for (std::size_t i = 0; i < kMaxMeasuredOps + 10; ++i) pace.Measure(StrCat("op", i), 5, 1, 1);
  EXPECT_EQ(pace.EstimateUs(StrCat("op", kMaxMeasuredOps + 5), 1), kUnknownTaskUs);
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

TEST(ReadyQueue, OrdersByPriorityThenJobThenArrival) {
  ReadyQueue queue;
  const Resources need{1, 0, 0};
  queue.Push({0, 1}, need, {{1, 0}, 1});
  queue.Push({5, 3}, need, {{3, 0}, 1});
  queue.Push({5, 2}, need, {{2, 0}, 1});
  queue.Push({5, 2}, need, {{2, 1}, 1});
  std::vector<TaskId> order;
  while (auto* lane = queue.Best([](const Resources&) { return true; })) {
    order.push_back(queue.Pop(*lane).task);
  }
  EXPECT_EQ(order, (std::vector<TaskId>{{2, 0}, {2, 1}, {3, 0}, {1, 0}}));
  EXPECT_TRUE(queue.empty());
}

TEST(ReadyQueue, OfAJobsTasksTheLeastNeedGoesFirstAndOfAnOlderJobAnyNeed) {
  ReadyQueue queue;
  queue.Push({0, 1}, {1000, 0, 0}, {{1, 0}, 1});
  queue.Push({0, 1}, {500, 0, 0}, {{1, 1}, 1});
  queue.Push({0, 2}, {250, 0, 0}, {{2, 0}, 1});
  std::vector<TaskId> order;
  while (auto* lane = queue.Best([](const Resources&) { return true; })) {
    order.push_back(queue.Pop(*lane).task);
  }
  EXPECT_EQ(order, (std::vector<TaskId>{{1, 1}, {1, 0}, {2, 0}}));
}

TEST(ReadyQueue, CountsItsTasksAndHowOftenTheFirstWasPassedOver) {
  ReadyQueue queue;
  for (std::uint32_t i = 0; i < 4; ++i) queue.Push({0, 1}, {1, 0, 0}, {{1, i}, 1});
  EXPECT_EQ(queue.size(), 4u);
  ReadyQueue::Lane& lane = *queue.Best([](const Resources&) { return true; });
  EXPECT_EQ(queue.Pop(lane, 2).task, (TaskId{1, 2}));
  EXPECT_EQ(queue.Pop(lane, 2).task, (TaskId{1, 3}));
  EXPECT_EQ(ReadyQueue::Head(lane).passed_over, 2u);
  EXPECT_EQ(queue.size(), 2u);
  EXPECT_EQ(queue.Pop(lane).task, (TaskId{1, 0}));
  EXPECT_EQ(ReadyQueue::Head(lane).passed_over, 0u);
  queue.Pop(lane);
  EXPECT_EQ(queue.size(), 0u);
}

TEST(ReadyQueue, DropsTheTasksOfAJobWhateverTheyNeed) {
  ReadyQueue queue;
  queue.Push({5, 1}, {1, 0, 0}, {{1, 0}, 1});
  queue.Push({5, 1}, {1, 0, 0}, {{1, 1}, 1});
  queue.Push({5, 1}, {2, 0, 0}, {{1, 2}, 1});
  queue.Push({5, 2}, {1, 0, 0}, {{2, 0}, 1});
  queue.Drop({5, 3});
  EXPECT_EQ(queue.size(), 4u);
  queue.Drop({5, 1});
  EXPECT_EQ(queue.size(), 1u);
  ASSERT_EQ(queue.lanes(), 1u);
  EXPECT_EQ(queue.Pop(*queue.Best([](const Resources&) { return true; })).task, (TaskId{2, 0}));
  EXPECT_TRUE(queue.empty());
}

TEST(ReadyQueue, RefusesMoreShapesThanItsLimit) {
  ReadyQueue queue;
  for (std::uint32_t i = 0; i < kMaxResourceShapes; ++i) {
    EXPECT_TRUE(queue.Push({0, 1}, {i, 0, 0}, {{1, i}, 1}));
  }
  EXPECT_FALSE(queue.Push({0, 1}, {99999, 0, 0}, {{1, 0}, 1}));
}

}  // namespace
}  // namespace patchbay::scheduler
