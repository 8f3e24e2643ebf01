// A consumer of a stream with units: order, the end, a restart, and what others took.
#include <gtest/gtest.h>

#include "runtime/client/stream.h"
#include "tests/runtime/client/streaming_cluster.h"

namespace patchbay::client {
namespace {

using namespace testing;  // NOLINT: the fixture of this folder

/// Units of 3, 1, 1 and 2 batches.
StreamGeometry Units() {
  StreamGeometry g = TestGeometry();
  g.global_batch = 4;
  g.units = *UnitRuns::OfCounts(std::vector<std::uint64_t>{9, 4, 2, 7}, g.global_batch);
  g.patches_per_epoch = g.units.patches();
  return g;
}

std::unique_ptr<Stream> AttachToUnits(StreamingCluster& cluster) {
  StreamOptions options;
  options.job = kJob;
  options.node = "test";
  options.rank = 987'654;
  options.attach_timeout_ms = kPatience;
  auto stream = Stream::AttachOver(cluster.Opener(), options);
  EXPECT_TRUE(stream.ok()) << stream.status();
  return stream.ok() ? std::move(*stream) : nullptr;
}

void ExpectNext(Stream& stream, std::uint64_t unit, bool last) {
  const auto batch = stream.Next(kPatience);
  ASSERT_TRUE(batch.ok()) << batch.status();
  ASSERT_TRUE(batch->unit().has_value());
  EXPECT_EQ(batch->unit()->number, unit);
  EXPECT_EQ(batch->IsLastOfUnit(), last);
  const PatchRun run = RankRun(stream.geometry(), batch->index(), 0);
  EXPECT_EQ(batch->count(), run.count);
  const auto image = batch->array("image");
  ASSERT_TRUE(image.ok());
  EXPECT_EQ(*image->tensor.data, PatchByte(batch->epoch(), run.first_ordinal));
}

TEST(StreamUnits, ComeWholeInOrderAndThenTheStreamEnds) {
  StreamingCluster cluster(Units());
  cluster.StartWorkers(2);
  auto stream = AttachToUnits(cluster);
  ASSERT_NE(stream, nullptr);
  const std::vector<int> batches = {3, 1, 1, 2};
  for (std::uint64_t unit = 0; unit < batches.size(); ++unit) {
    for (int i = 1; i <= batches[unit]; ++i) ExpectNext(*stream, unit, i == batches[unit]);
    const Status done = stream->FinishUnit(unit, {});
    ASSERT_TRUE(done.ok()) << done;
  }
  EXPECT_TRUE(absl::IsOutOfRange(stream->Next(kPatience).status()));
  EXPECT_TRUE(stream->FinishUnit(2, {}).ok()) << "once more is the same";
  EXPECT_TRUE(stream->Detach().ok());
  auto late = AttachToUnits(cluster);
  ASSERT_NE(late, nullptr);
  EXPECT_TRUE(absl::IsOutOfRange(late->Next(kPatience).status()));
}

TEST(StreamUnits, GoOnWhereTheyWereAfterARestartOfTheScheduler) {
  StreamingCluster cluster(Units());
  cluster.StartWorkers(2);
  auto stream = AttachToUnits(cluster);
  ASSERT_NE(stream, nullptr);
  ExpectNext(*stream, 0, false);
  cluster.Restart();
  ExpectNext(*stream, 0, false);
  ExpectNext(*stream, 0, true);
  EXPECT_TRUE(stream->FinishUnit(0, {}).ok());
  EXPECT_EQ(cluster.CountedTwice(), 0u);
}

TEST(StreamUnits, ARestartedSchedulerIsToldWhatIsNotFinished) {
  StreamingCluster cluster(Units());
  cluster.StartWorkers(2);
  auto stream = AttachToUnits(cluster);
  ASSERT_NE(stream, nullptr);
  EXPECT_TRUE(cluster.Await<protocol::AttachTrainer>().units.empty());
  for (int i = 1; i <= 3; ++i) ExpectNext(*stream, 0, i == 3);
  ASSERT_TRUE(stream->FinishUnit(0, {}).ok());
  ExpectNext(*stream, 1, true);
  cluster.Restart();
  const auto named = cluster.Await<protocol::AttachTrainer>().units;
  ASSERT_FALSE(named.empty());
  EXPECT_EQ(named.front(), (AssignedUnit{0, 1}));
  EXPECT_TRUE(stream->FinishUnit(1, {}).ok());
}

TEST(StreamUnits, AreWaitedForWhileOthersHaveThem) {
  StreamingCluster cluster(Units());
  auto stream = AttachToUnits(cluster);
  ASSERT_NE(stream, nullptr);
  EXPECT_TRUE(absl::IsDeadlineExceeded(stream->Next(100).status()));
  for (std::uint64_t unit = 0; unit < 4; ++unit) {
    ASSERT_TRUE(stream->FinishUnit(unit, {}).ok()) << "somebody else's";
  }
  EXPECT_TRUE(absl::IsOutOfRange(stream->Next(kPatience).status()));
}

TEST(StreamUnits, AConsumerThatMustStartOverIsTold) {
  StreamingCluster cluster(Units());
  auto stream = AttachToUnits(cluster);
  ASSERT_NE(stream, nullptr);
  cluster.TellTrainer(
      protocol::StreamFailed{kJob, OutcomeOf(absl::AbortedError("its image is damaged"))});
  EXPECT_TRUE(absl::IsAborted(stream->Next(kPatience).status()));
}

}  // namespace
}  // namespace patchbay::client
