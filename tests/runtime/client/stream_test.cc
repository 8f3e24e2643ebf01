#include "runtime/client/stream.h"

#include <atomic>
#include <thread>

#include <sys/wait.h>
#include <unistd.h>

#include "gtest/gtest.h"
#include "runtime/client/stream_plan.h"
#include "tests/runtime/client/streaming_cluster.h"

namespace patchbay::client {
namespace {

using namespace testing;  // NOLINT: the fixture of this folder

StreamOptions Options() {
  StreamOptions options;
  options.job = kJob;
  options.node = "test";
  options.attach_timeout_ms = kPatience;
  return options;
}

std::unique_ptr<Stream> Attach(StreamingCluster& cluster,
                               const StreamOptions& options = Options()) {
  auto stream = Stream::AttachOver(cluster.Opener(), options);
  EXPECT_TRUE(stream.ok()) << stream.status();
  return stream.ok() ? std::move(*stream) : nullptr;
}

/// Every patch of the batch is the one the plan's order puts there.
void ExpectRightBytes(const Batch& batch, const StreamGeometry& g, std::uint32_t rank = 0) {
  const PatchRun run = RankRun(g, batch.index(), rank);
  ASSERT_EQ(batch.count(), run.count);
  for (std::uint32_t p = 0; p < run.count; ++p) {
    const std::byte expected = PatchByte(batch.epoch(), run.first_ordinal + p);
    for (const BatchArray& array : batch.arrays()) {
      const auto bytes = static_cast<std::size_t>(array.tensor.stride_bytes[0]);
      for (const std::byte b : std::span(array.tensor.data + p * bytes, bytes)) {
        ASSERT_EQ(b, expected) << array.name << " of patch " << p;
      }
    }
  }
}

TEST(Stream, BringsEpochsInOrderWithTheRightBytes) {
  StreamingCluster cluster;
  cluster.StartWorkers(3);
  auto stream = Attach(cluster);
  ASSERT_NE(stream, nullptr);
  EXPECT_EQ(stream->batches_per_epoch(), 3u);
  Position expected;
  for (int i = 0; i < 9; ++i) {
    const auto batch = stream->Next(kPatience);
    ASSERT_TRUE(batch.ok()) << batch.status();
    EXPECT_EQ((Position{batch->epoch(), batch->index()}), expected);
    ExpectRightBytes(*batch, TestGeometry());
    expected = NextPosition(TestGeometry(), expected);
  }
  const StreamStats stats = stream->stats();
  EXPECT_EQ(stats.batches, 9u);
  EXPECT_EQ(stats.patches, 66u);
  EXPECT_EQ(stats.bytes, 66u * TestLayout().PatchBytes());
  EXPECT_GE(stats.stall_fraction, 0.0);
  EXPECT_LE(stats.stall_fraction, 1.0);
  EXPECT_LE(stats.wait_s, stats.wall_s);
  EXPECT_GT(stats.wait_p50_s, 0);
  EXPECT_LE(stats.wait_p50_s, stats.wait_p99_s);
  EXPECT_LE(stats.wait_p99_s, 1.125 * stats.wait_s);
  EXPECT_EQ(cluster.CountedTwice(), 0u);
}

TEST(Stream, ShapesABatchAsThePlanSays) {
  StreamingCluster cluster;
  cluster.StartWorkers(1);
  auto stream = Attach(cluster);
  ASSERT_NE(stream, nullptr);
  const auto batch = stream->Next(kPatience);
  ASSERT_TRUE(batch.ok());
  const auto image = batch->array("image");
  ASSERT_TRUE(image.ok()) << image.status();
  const TensorView& view = image->tensor;
  EXPECT_EQ(view.dtype, DType::kFloat16);
  ASSERT_EQ(view.rank, 4);
  EXPECT_EQ(view.shape[0], 8);
  EXPECT_EQ(view.shape[1], 3);
  EXPECT_EQ(view.shape[2], 4);
  EXPECT_EQ(view.shape[3], 5);
  EXPECT_EQ(view.stride_bytes[0], 120);
  EXPECT_EQ(view.stride_bytes[3], 2);
}

TEST(Stream, GivesEachRankItsPart) {
  for (std::uint32_t rank = 0; rank < 3; ++rank) {
    StreamingCluster cluster(TestGeometry(3));
    cluster.StartWorkers(2);
    StreamOptions options = Options();
    options.rank = rank;
    options.world_size = 3;
    auto stream = Attach(cluster, options);
    ASSERT_NE(stream, nullptr);
    for (int i = 0; i < 4; ++i) {
      const auto batch = stream->Next(kPatience);
      ASSERT_TRUE(batch.ok()) << batch.status();
      ExpectRightBytes(*batch, TestGeometry(3), rank);
    }
  }
}

TEST(Stream, ARankWithoutPatchesInABatchGetsAnEmptyOne) {
  StreamGeometry g = TestGeometry(4);
  g.patches_per_epoch = 9;  // the second batch holds one patch: rank 3's
  StreamingCluster cluster(g);
  cluster.StartWorkers(1);
  StreamOptions options = Options();
  options.world_size = 4;
  auto stream = Attach(cluster, options);
  ASSERT_NE(stream, nullptr);
  ASSERT_TRUE(stream->Next(kPatience).ok());
  const auto empty = stream->Next(kPatience);
  ASSERT_TRUE(empty.ok()) << empty.status();
  EXPECT_EQ(empty->index(), 1u);
  EXPECT_EQ(empty->count(), 0u);
  EXPECT_EQ(empty->array("image")->tensor.shape[0], 0);
  const auto next = stream->Next(kPatience);
  ASSERT_TRUE(next.ok()) << next.status();
  EXPECT_EQ(next->epoch(), 1u);
}

TEST(Stream, GoesOnAfterARestartOfTheScheduler) {
  StreamingCluster cluster;
  cluster.StartWorkers(2);
  auto stream = Attach(cluster);
  ASSERT_NE(stream, nullptr);
  Position expected;
  for (int i = 0; i < 30; ++i) {
    if (i % 5 == 2) cluster.Restart();
    const auto batch = stream->Next(kPatience);
    ASSERT_TRUE(batch.ok()) << batch.status();
    EXPECT_EQ((Position{batch->epoch(), batch->index()}), expected);
    ExpectRightBytes(*batch, TestGeometry());
    expected = NextPosition(TestGeometry(), expected);
  }
}

TEST(Stream, ResumesWhereItsTokenSays) {
  StreamingCluster first, second;
  first.StartWorkers(1);
  auto stream = Attach(first);
  ASSERT_NE(stream, nullptr);
  for (int i = 0; i < 4; ++i) ASSERT_TRUE(stream->Next(kPatience).ok());
  const auto token = ParseResumeToken(stream->ResumeToken());
  ASSERT_TRUE(token.ok()) << token.status();
  const Position at = token->next;
  EXPECT_EQ(at, (Position{1, 1}));
  stream.reset();

  second.StartWorkers(1);
  StreamOptions options = Options();
  options.first = at;
  options.resume = *token;
  stream = Attach(second, options);
  ASSERT_NE(stream, nullptr);
  const auto batch = stream->Next(kPatience);
  ASSERT_TRUE(batch.ok());
  EXPECT_EQ((Position{batch->epoch(), batch->index()}), at);
  ExpectRightBytes(*batch, TestGeometry());
}

TEST(Stream, OfAnotherPlanIsRefusedBeforeAnythingIsMade) {
  StreamingCluster cluster;
  StreamOptions options = Options();
  client::ResumeToken token;
  token.plan = Sha256Of("another");
  options.resume = token;
  const auto refused = Stream::AttachOver(cluster.Opener(), options);
  EXPECT_TRUE(absl::IsFailedPrecondition(refused.status())) << refused.status();
  EXPECT_NE(refused.status().message().find("resume: the token is of another plan"),
            std::string_view::npos);
}

TEST(Stream, IsInertInAForkedChild) {
  StreamingCluster cluster;
  cluster.StartWorkers(1);
  auto stream = Attach(cluster);
  ASSERT_NE(stream, nullptr);
  auto batch = stream->Next(kPatience);
  ASSERT_TRUE(batch.ok());
  const pid_t child = fork();
  if (child == 0) {
    alarm(30);  // a child that waits for a thread it does not have would never end
    batch->Release();
    const bool refused = absl::IsFailedPrecondition(stream->Next(0).status()) &&
                         absl::IsFailedPrecondition(stream->Detach());
    stream.reset();
    _exit(refused ? 0 : 1);
  }
  int status = -1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  ExpectRightBytes(*batch, TestGeometry());
  EXPECT_TRUE(stream->Next(kPatience).ok()) << "the parent goes on";
}

/// The trainer's next answer about that lease; the worker that held it held others too.
protocol::ShardFenced AwaitFenced(StreamingCluster& cluster, const LeaseNumber& lease) {
  for (;;) {
    protocol::ShardFenced fenced = cluster.Await<protocol::ShardFenced>();
    if (fenced.lease == lease) return fenced;
  }
}

TEST(Stream, FencesAShardOnRequestAndTakesItsReplacement) {
  StreamingCluster cluster;
  auto stream = Attach(cluster);
  ASSERT_NE(stream, nullptr);
  const protocol::ShardLease lost = cluster.LeaseToAFrozenWorker();
  cluster.StartWorkers(2);
  cluster.KillTheFrozenWorker();
  const protocol::ShardFenced fenced = AwaitFenced(cluster, lost.lease);
  EXPECT_EQ(fenced.shard, lost.shard);
  EXPECT_FALSE(fenced.already_counted);
  EXPECT_EQ(fenced.row.slot, lost.grant.slot);
  const auto batch = stream->Next(kPatience);
  ASSERT_TRUE(batch.ok()) << batch.status();
  ExpectRightBytes(*batch, TestGeometry());

  protocol::FenceShard fence;
  fence.stream = kJob;
  fence.lease = lost.lease;
  fence.shard = lost.shard;
  fence.grant = lost.grant;
  cluster.TellTrainer(fence);
  EXPECT_TRUE(AwaitFenced(cluster, lost.lease).already_counted);
}

TEST(Stream, SaysWhyTheStreamFailed) {
  StreamingCluster cluster;
  auto stream = Attach(cluster);
  ASSERT_NE(stream, nullptr);
  protocol::StreamFailed failed;
  failed.stream = kJob;
  failed.outcome = {static_cast<int>(absl::StatusCode::kDataLoss), "decode tile: row 3: corrupt"};
  cluster.TellTrainer(failed);
  const auto batch = stream->Next(kPatience);
  EXPECT_TRUE(absl::IsDataLoss(batch.status())) << batch.status();
  EXPECT_NE(MessageOf(batch.status()).find("row 3"), std::string_view::npos);
}

TEST(Stream, LeavesAClusterThatIsStoppingAndKeepsTheBatchItHas) {
  StreamingCluster cluster;
  cluster.StartWorkers(1);
  StreamOptions options = Options();
  options.leave_when_stopping = true;
  auto stream = Attach(cluster, options);
  ASSERT_NE(stream, nullptr);
  const auto held = stream->Next(kPatience);
  ASSERT_TRUE(held.ok()) << held.status();
  cluster.TellTrainer(protocol::ShuttingDown{20'000});
  EXPECT_EQ(cluster.Await<protocol::DetachTrainer>().stream, kJob);
  Status end;
  while (end.ok())
    end = stream->Next(kPatience).status();  // batches that were ready may come first
  EXPECT_TRUE(absl::IsAborted(end)) << end;
  EXPECT_NE(MessageOf(end).find("the cluster is stopping within 20 s"), std::string_view::npos)
      << end;
  ExpectRightBytes(*held, TestGeometry());
}

TEST(Stream, WaitsForTheNextStartOfAClusterUnlessToldToLeave) {
  StreamingCluster cluster;
  auto stream = Attach(cluster);
  ASSERT_NE(stream, nullptr);
  cluster.TellTrainer(protocol::ShuttingDown{});
  cluster.AwaitHeartbeats(1);
  cluster.StartWorkers(1);
  const auto batch = stream->Next(kPatience);
  ASSERT_TRUE(batch.ok()) << batch.status();
  ExpectRightBytes(*batch, TestGeometry());
}

TEST(Stream, FailsWhenItsKeyIsRevoked) {
  StreamingCluster cluster;
  auto stream = Attach(cluster);
  ASSERT_NE(stream, nullptr);
  cluster.Lose(absl::PermissionDeniedError("key was revoked"));
  EXPECT_TRUE(absl::IsPermissionDenied(stream->Next(kPatience).status()));
}

TEST(Stream, FailsWhenTheSchedulerStaysAway) {
  StreamingCluster cluster;
  StreamOptions options = Options();
  options.scheduler_grace_ms = 20;
  options.heartbeat_ms = 5;
  auto stream = Attach(cluster, options);
  ASSERT_NE(stream, nullptr);
  cluster.Lose(absl::UnavailableError("gone"));
  EXPECT_TRUE(absl::IsUnavailable(stream->Next(kPatience).status()));
}

TEST(Stream, AsksAgainOnceAtATimeHoweverOftenItWasRefused) {
  StreamingCluster cluster;
  StreamOptions options = Options();
  options.heartbeat_ms = 5;
  auto stream = Attach(cluster, options);
  ASSERT_NE(stream, nullptr);
  cluster.RefuseAttach(absl::UnavailableError("busy"));
  for (int i = 0; i < 10; ++i) {
    cluster.Restart();
    cluster.AwaitHeartbeats(3);  // ten pauses, if each restart had one, would end one after another
  }
  const std::uint64_t before = cluster.CountHeard().attaches;
  EXPECT_GE(before, 11u);
  cluster.AwaitHeartbeats(200);  // two pauses
  EXPECT_LE(cluster.CountHeard().attaches - before, 3u);
}

TEST(Stream, RefusesAPlanThatIsNotTheSchedulers) {
  StreamingCluster cluster;
  cluster.ChangeAttached([](protocol::TrainerAttached attached) {
    attached.plan_digest = Sha256Of("another plan");
    return Body(attached);
  });
  EXPECT_TRUE(absl::IsFailedPrecondition(Stream::AttachOver(cluster.Opener(), Options()).status()));
}

TEST(Stream, RefusesAnotherGeometryThanThePlans) {
  StreamingCluster cluster;
  cluster.ChangeAttached([](protocol::TrainerAttached attached) {
    ++attached.geometry.shard_patches;
    return Body(attached);
  });
  EXPECT_TRUE(absl::IsFailedPrecondition(Stream::AttachOver(cluster.Opener(), Options()).status()));
}

TEST(Stream, RefusesToAttachWhenPlanningFailedOrIsForOtherRanks) {
  StreamingCluster failed(TestGeometry(), OutcomeOf(absl::DataLossError("no image can be read")));
  EXPECT_TRUE(absl::IsFailedPrecondition(Stream::AttachOver(failed.Opener(), Options()).status()));

  StreamingCluster other(TestGeometry(2));
  EXPECT_TRUE(absl::IsInvalidArgument(Stream::AttachOver(other.Opener(), Options()).status()));

  StreamingCluster refused;
  refused.RefuseAttach(absl::AlreadyExistsError("rank 0 is taken"));
  EXPECT_TRUE(absl::IsAlreadyExists(Stream::AttachOver(refused.Opener(), Options()).status()));
}

TEST(Stream, RefusesAnEpochThatWouldRepeatTheRandomNumbersOfAnother) {
  StreamingCluster cluster;
  StreamOptions options = Options();
  options.first.epoch = kMaxEpoch + 1;
  const Status status = Stream::AttachOver(cluster.Opener(), options).status();
  EXPECT_TRUE(absl::IsInvalidArgument(status));
  EXPECT_NE(MessageOf(status).find("epoch 65536 is past the last one, 65535"), std::string::npos);
}

TEST(Stream, GivesUpAttachingWhenToldTo) {
  StreamingCluster cluster;
  StreamOptions options = Options();
  options.keep_waiting = [] { return false; };
  EXPECT_TRUE(absl::IsCancelled(Stream::AttachOver(cluster.Opener(), options).status()));
}

TEST(Stream, RefusesImpossibleOptions) {
  StreamingCluster cluster;
  StreamOptions options = Options();
  options.rank = 1;
  EXPECT_TRUE(absl::IsInvalidArgument(Stream::AttachOver(cluster.Opener(), options).status()));
  options = Options();
  options.prefetch = ~0u;
  EXPECT_TRUE(absl::IsInvalidArgument(Stream::AttachOver(cluster.Opener(), options).status()));
  options = Options();
  options.first.batch = 3;
  EXPECT_TRUE(absl::IsInvalidArgument(Stream::AttachOver(cluster.Opener(), options).status()));
}

TEST(Batch, AnExhaustedRingNamesWhoHoldsIt) {
  StreamingCluster cluster;
  cluster.StartWorkers(1);
  StreamOptions options = Options();
  options.prefetch = 0;
  options.exhausted_grace_ms = 1;
  auto stream = Attach(cluster, options);
  ASSERT_NE(stream, nullptr);
  auto first = stream->Next(kPatience);
  auto second = stream->Next(kPatience);
  ASSERT_TRUE(first.ok() && second.ok());
  const auto kept = first->Keep("validation cache");
  first->Release();
  const auto third = stream->Next(kPatience);
  EXPECT_TRUE(absl::IsResourceExhausted(third.status())) << third.status();
  EXPECT_NE(MessageOf(third.status()).find("validation cache"), std::string_view::npos)
      << third.status();
  second->Release();
  EXPECT_TRUE(stream->Next(kPatience).ok());
}

TEST(Batch, ASlotComesBackOnlyAfterItsGate) {
  StreamingCluster cluster;
  cluster.StartWorkers(1);
  StreamOptions options = Options();
  options.prefetch = 0;
  options.exhausted_grace_ms = 1;
  auto stream = Attach(cluster, options);
  ASSERT_NE(stream, nullptr);
  auto first = stream->Next(kPatience);
  auto second = stream->Next(kPatience);
  ASSERT_TRUE(first.ok() && second.ok());
  std::atomic<bool> passed = false;
  first->ReleaseWhen([&passed] { return passed.load(); });
  first->Release();
  EXPECT_TRUE(absl::IsResourceExhausted(stream->Next(kPatience).status()));
  passed = true;
  const auto next = [&] {
    for (;;) {
      auto batch = stream->Next(kPatience);
      if (!absl::IsResourceExhausted(batch.status())) return batch;
    }
  }();
  ASSERT_TRUE(next.ok()) << next.status();
  ExpectRightBytes(*next, TestGeometry());
}

TEST(Batch, StaysReadableAfterTheStreamIsGone) {
  StreamingCluster cluster;
  cluster.StartWorkers(1);
  auto stream = Attach(cluster);
  ASSERT_NE(stream, nullptr);
  auto batch = stream->Next(kPatience);
  ASSERT_TRUE(batch.ok());
  ASSERT_TRUE(stream->Detach().ok());
  EXPECT_EQ(cluster.Await<protocol::DetachTrainer>().stream, kJob);
  EXPECT_TRUE(absl::IsFailedPrecondition(stream->Next(kPatience).status()));
  stream.reset();
  ExpectRightBytes(*batch, TestGeometry());
}

TEST(Stream, DetachingDoesNotWaitForASchedulerThatIsGone) {
  StreamingCluster cluster;
  auto stream = Attach(cluster);
  ASSERT_NE(stream, nullptr);
  cluster.FallSilent();
  cluster.Lose(absl::UnavailableError("it died"));
  EXPECT_TRUE(absl::IsUnavailable(stream->Detach()));
}

TEST(Stream, DetachingHardlyWaitsOnceToldNotTo) {
  StreamingCluster cluster;
  StreamOptions options = Options();
  std::atomic<bool> patient = true;
  options.keep_waiting = [&patient] { return patient.load(); };
  auto stream = Attach(cluster, options);
  ASSERT_NE(stream, nullptr);
  cluster.FallSilent();
  patient = false;
  EXPECT_TRUE(absl::IsCancelled(stream->Detach()));
}

TEST(StreamPlan, ReadsWhatThePlannerWrote) {
  const auto plan = ParseStreamPlan(PlanResult(TestGeometry()));
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_EQ(plan->geometry, TestGeometry());
  EXPECT_EQ(plan->digest, Sha256Of(TestPlan()));
  EXPECT_EQ(*plan->layout, TestLayout());
}

TEST(StreamPlan, RefusesAPlanThatIsNoJson) {
  EXPECT_FALSE(ParseStreamPlan("").ok());
  Json no_text = *ParseJson(PlanResult(TestGeometry()), "test");
  no_text["plan"] = "{";
  EXPECT_FALSE(ParseStreamPlan(DumpJson(no_text)).ok());
}

}  // namespace
}  // namespace patchbay::client
