#include "runtime/client/stream.h"

#include <atomic>
#include <thread>

#include <sys/wait.h>
#include <unistd.h>

#include "gtest/gtest.h"
#include "runtime/client/stream_plan.h"
#include "tests/runtime/client/played_scheduler.h"

namespace patchbay::client {
namespace {

using namespace testing;  // NOLINT: the fixture of this folder

constexpr std::int64_t kPatience = 20'000;  // ms; only a failing test waits this long

StreamOptions Options() {
  StreamOptions options;
  options.job = kJob;
  options.node = "test";
  options.attach_timeout_ms = kPatience;
  return options;
}

std::unique_ptr<Stream> Attach(PlayedScheduler& scheduler,
                               const StreamOptions& options = Options()) {
  auto stream = Stream::AttachOver(scheduler.Opener(), options);
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
  PlayedScheduler scheduler;
  scheduler.StartWorkers(3);
  auto stream = Attach(scheduler);
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
  EXPECT_EQ(scheduler.CountedTwice(), 0u);
}

TEST(Stream, ShapesABatchAsThePlanSays) {
  PlayedScheduler scheduler;
  scheduler.StartWorkers(1);
  auto stream = Attach(scheduler);
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
    PlayedScheduler scheduler(TestGeometry(3), rank);
    scheduler.StartWorkers(2);
    StreamOptions options = Options();
    options.rank = rank;
    options.world_size = 3;
    auto stream = Attach(scheduler, options);
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
  PlayedScheduler scheduler(g, 0);
  scheduler.StartWorkers(1);
  StreamOptions options = Options();
  options.world_size = 4;
  auto stream = Attach(scheduler, options);
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
  PlayedScheduler scheduler;
  scheduler.StartWorkers(2);
  auto stream = Attach(scheduler);
  ASSERT_NE(stream, nullptr);
  Position expected;
  for (int i = 0; i < 30; ++i) {
    if (i % 5 == 2) scheduler.Restart();
    const auto batch = stream->Next(kPatience);
    ASSERT_TRUE(batch.ok()) << batch.status();
    EXPECT_EQ((Position{batch->epoch(), batch->index()}), expected);
    ExpectRightBytes(*batch, TestGeometry());
    expected = NextPosition(TestGeometry(), expected);
  }
}

TEST(Stream, ResumesWhereItsTokenSays) {
  PlayedScheduler first, second;
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
  PlayedScheduler scheduler;
  StreamOptions options = Options();
  client::ResumeToken token;
  token.plan = Sha256Of("another");
  options.resume = token;
  const auto refused = Stream::AttachOver(scheduler.Opener(), options);
  EXPECT_TRUE(absl::IsFailedPrecondition(refused.status())) << refused.status();
  EXPECT_NE(refused.status().message().find("resume: the token is of another plan"),
            std::string_view::npos);
}

TEST(Stream, IsInertInAForkedChild) {
  PlayedScheduler scheduler;
  scheduler.StartWorkers(1);
  auto stream = Attach(scheduler);
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

TEST(Stream, FencesAShardOnRequestAndTakesItsReplacement) {
  PlayedScheduler scheduler;
  auto stream = Attach(scheduler);
  ASSERT_NE(stream, nullptr);
  const protocol::ShardLease lost = scheduler.StealLease();
  scheduler.StartWorkers(2);
  protocol::FenceShard fence;
  fence.stream = kJob;
  fence.lease = lost.lease;
  fence.shard = lost.shard;
  fence.grant = lost.grant;
  scheduler.TellTrainer(fence);
  const auto fenced = scheduler.Await<protocol::ShardFenced>();
  EXPECT_EQ(fenced.lease, lost.lease);
  EXPECT_EQ(fenced.shard, lost.shard);
  EXPECT_FALSE(fenced.already_counted);
  EXPECT_EQ(fenced.row.slot, lost.grant.slot);
  scheduler.LeaseAgain(lost, fenced.row);
  const auto batch = stream->Next(kPatience);
  ASSERT_TRUE(batch.ok()) << batch.status();
  ExpectRightBytes(*batch, TestGeometry());

  scheduler.TellTrainer(fence);
  EXPECT_TRUE(scheduler.Await<protocol::ShardFenced>().already_counted);
}

TEST(Stream, SaysWhyTheStreamFailed) {
  PlayedScheduler scheduler;
  auto stream = Attach(scheduler);
  ASSERT_NE(stream, nullptr);
  protocol::StreamFailed failed;
  failed.stream = kJob;
  failed.outcome = {static_cast<int>(absl::StatusCode::kDataLoss), "decode tile: row 3: corrupt"};
  scheduler.TellTrainer(failed);
  const auto batch = stream->Next(kPatience);
  EXPECT_TRUE(absl::IsDataLoss(batch.status())) << batch.status();
  EXPECT_NE(MessageOf(batch.status()).find("row 3"), std::string_view::npos);
}

TEST(Stream, FailsWhenItsKeyIsRevoked) {
  PlayedScheduler scheduler;
  auto stream = Attach(scheduler);
  ASSERT_NE(stream, nullptr);
  scheduler.Lose(absl::PermissionDeniedError("key was revoked"));
  EXPECT_TRUE(absl::IsPermissionDenied(stream->Next(kPatience).status()));
}

TEST(Stream, FailsWhenTheSchedulerStaysAway) {
  PlayedScheduler scheduler;
  StreamOptions options = Options();
  options.scheduler_grace_ms = 20;
  options.heartbeat_ms = 5;
  auto stream = Attach(scheduler, options);
  ASSERT_NE(stream, nullptr);
  scheduler.Lose(absl::UnavailableError("gone"));
  EXPECT_TRUE(absl::IsUnavailable(stream->Next(kPatience).status()));
}

TEST(Stream, AsksAgainOnceAtATimeHoweverOftenItWasRefused) {
  PlayedScheduler scheduler;
  StreamOptions options = Options();
  options.heartbeat_ms = 5;
  auto stream = Attach(scheduler, options);
  ASSERT_NE(stream, nullptr);
  scheduler.RefuseAttach(absl::UnavailableError("busy"));
  for (int i = 0; i < 10; ++i) {
    scheduler.Restart();
    scheduler.AwaitHeartbeats(3);  // what would be ten pauses end one after another
  }
  const std::uint64_t before = scheduler.CountHeard().attaches;
  EXPECT_GE(before, 11u);
  scheduler.AwaitHeartbeats(200);  // two pauses
  EXPECT_LE(scheduler.CountHeard().attaches - before, 3u);
}

TEST(Stream, RefusesAPlanThatIsNotTheSchedulers) {
  PlayedScheduler scheduler;
  scheduler.attached_.plan_digest = Sha256Of("another plan");
  EXPECT_TRUE(
      absl::IsFailedPrecondition(Stream::AttachOver(scheduler.Opener(), Options()).status()));
}

TEST(Stream, RefusesAnotherGeometryThanThePlans) {
  PlayedScheduler scheduler;
  ++scheduler.attached_.geometry.shard_patches;
  EXPECT_TRUE(
      absl::IsFailedPrecondition(Stream::AttachOver(scheduler.Opener(), Options()).status()));
}

TEST(Stream, RefusesToAttachWhenPlanningFailedOrIsForOtherRanks) {
  PlayedScheduler failed;
  failed.result_.state = protocol::TaskState::kFailed;
  EXPECT_TRUE(absl::IsFailedPrecondition(Stream::AttachOver(failed.Opener(), Options()).status()));

  PlayedScheduler other(TestGeometry(2));
  EXPECT_TRUE(absl::IsInvalidArgument(Stream::AttachOver(other.Opener(), Options()).status()));

  PlayedScheduler refused;
  refused.attach_error_ = absl::AlreadyExistsError("rank 0 is taken");
  EXPECT_TRUE(absl::IsAlreadyExists(Stream::AttachOver(refused.Opener(), Options()).status()));
}

TEST(Stream, RefusesAnEpochThatWouldRepeatTheRandomNumbersOfAnother) {
  PlayedScheduler scheduler;
  StreamOptions options = Options();
  options.first.epoch = kMaxEpoch + 1;
  const Status status = Stream::AttachOver(scheduler.Opener(), options).status();
  EXPECT_TRUE(absl::IsInvalidArgument(status));
  EXPECT_NE(MessageOf(status).find("epoch 65536 is past the last one, 65535"), std::string::npos);
}

TEST(Stream, GivesUpAttachingWhenToldTo) {
  PlayedScheduler scheduler;
  StreamOptions options = Options();
  options.keep_waiting = [] { return false; };
  EXPECT_TRUE(absl::IsCancelled(Stream::AttachOver(scheduler.Opener(), options).status()));
}

TEST(Stream, RefusesImpossibleOptions) {
  PlayedScheduler scheduler;
  StreamOptions options = Options();
  options.rank = 1;
  EXPECT_TRUE(absl::IsInvalidArgument(Stream::AttachOver(scheduler.Opener(), options).status()));
  options = Options();
  options.prefetch = ~0u;
  EXPECT_TRUE(absl::IsInvalidArgument(Stream::AttachOver(scheduler.Opener(), options).status()));
  options = Options();
  options.first.batch = 3;
  EXPECT_TRUE(absl::IsInvalidArgument(Stream::AttachOver(scheduler.Opener(), options).status()));
}

TEST(Batch, AnExhaustedRingNamesWhoHoldsIt) {
  PlayedScheduler scheduler;
  scheduler.StartWorkers(1);
  StreamOptions options = Options();
  options.prefetch = 0;
  options.exhausted_grace_ms = 1;
  auto stream = Attach(scheduler, options);
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
  PlayedScheduler scheduler;
  scheduler.StartWorkers(1);
  StreamOptions options = Options();
  options.prefetch = 0;
  options.exhausted_grace_ms = 1;
  auto stream = Attach(scheduler, options);
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
  PlayedScheduler scheduler;
  scheduler.StartWorkers(1);
  auto stream = Attach(scheduler);
  ASSERT_NE(stream, nullptr);
  auto batch = stream->Next(kPatience);
  ASSERT_TRUE(batch.ok());
  ASSERT_TRUE(stream->Detach().ok());
  EXPECT_EQ(scheduler.Await<protocol::DetachTrainer>().stream, kJob);
  EXPECT_TRUE(absl::IsFailedPrecondition(stream->Next(kPatience).status()));
  stream.reset();
  ExpectRightBytes(*batch, TestGeometry());
}

TEST(Stream, DetachingDoesNotWaitForASchedulerThatIsGone) {
  PlayedScheduler scheduler;
  auto stream = Attach(scheduler);
  ASSERT_NE(stream, nullptr);
  scheduler.FallSilent();
  scheduler.Lose(absl::UnavailableError("it died"));
  EXPECT_TRUE(absl::IsUnavailable(stream->Detach()));
}

TEST(Stream, DetachingHardlyWaitsOnceToldNotTo) {
  PlayedScheduler scheduler;
  StreamOptions options = Options();
  std::atomic<bool> patient = true;
  options.keep_waiting = [&patient] { return patient.load(); };
  auto stream = Attach(scheduler, options);
  ASSERT_NE(stream, nullptr);
  scheduler.FallSilent();
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
