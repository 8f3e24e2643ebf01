// Streams at the limits of retries and of remembered incarnations.
#include <gtest/gtest.h>

#include "runtime/wire/protocol/codec.h"
#include "tests/scheduler/core/core_rig.h"

namespace patchbay::scheduler {
namespace {

using protocol::JobState;
using protocol::SlotState;

class StreamBounds : public testing::Test {
 protected:
  ~StreamBounds() override { EXPECT_EQ(rig.core().CheckInvariants(), absl::OkStatus()); }

  /// One batch a global_batch of 4 patches, and one shard: `batches` of them an epoch, for so many
  /// ranks. With one rank each is an image of its own.
  static std::string Plan(std::size_t batches, std::uint32_t ranks = 1) {
    const std::string runs = ranks == 1 ? StrCat(R"(,"image_runs":[[4,)", batches, "]]") : "";
    return StrCat(R"({"plan":"p","manifest":{},"geometry":{"patches_per_epoch":)",
                  4 * ranks * batches, R"(,"global_batch":)", 4 * ranks,
                  R"(,"tail":"keep","world_size":)", ranks,
                  R"(,"shard_patches":4,"numerics":"cpu")", runs, "}}");
  }
  void Open(const std::string& plan, std::uint32_t ranks = 1) {
    rig.AddAgent();
    rig.AddWorker(0);
    protocol::SubmitJob submit;
    submit.submission_key = "key";
    submit.kind = "stream";
    submit.root.op = "stream.plan";
    submit.world_size = ranks;
    rig.Tell(CoreRig::kOps, submit);
    job = rig.Find<protocol::JobSubmitted>()->job;
    rig.Finish(CoreRig::kWorker0, rig.Granted().at(0), {}, {}, plan);
  }
  /// False when it was refused.
  bool Attach(std::uint64_t incarnation, std::uint32_t rank = 0, std::uint32_t ranks = 1,
              std::uint32_t slots = 1) {
    rig.Join(CoreRig::kTrainer0 + rank, Role::kOperator, "ops");
    protocol::AttachTrainer attach;
    attach.stream = job;
    attach.rank = rank;
    attach.world_size = ranks;
    attach.trainer_incarnation = incarnation;
    attach.endpoint.host_identity = "host";
    attach.endpoint.remote_address = address;
    if (slots != 0) attach.slots.push_back({0, 1, SlotState::kFree, 0, 0, {}});
    rig.Tell(CoreRig::kTrainer0 + rank, attach);
    return rig.FindFor<protocol::TrainerAttached>(CoreRig::kTrainer0 + rank) != nullptr;
  }
  void Return(const protocol::ShardLease& lease, const Outcome& outcome, std::uint32_t worker = 0) {
    protocol::ShardsReturned returned;
    returned.items.push_back({lease.lease, job, lease.shard, outcome});
    rig.Tell(CoreRig::kWorker0 + worker, returned);
  }
  /// The only shard was made in vain, and is leased again: empty when it is not.
  std::vector<protocol::ShardLease> FailOnce(absl::StatusCode code) {
    Return(lease_, {static_cast<int>(code), "why"});
    return Fenced();
  }
  /// The fence that was asked for is there: the lease that follows, empty when none does.
  std::vector<protocol::ShardLease> Fenced() {
    const auto* fence = rig.FindFor<protocol::FenceShard>(CoreRig::kTrainer0);
    if (fence == nullptr) return {};
    protocol::ShardFenced fenced;
    fenced.stream = job;
    fenced.lease = fence->lease;
    fenced.shard = fence->shard;
    fenced.row = {0, 1, SlotState::kFilling, fence->shard.epoch, fence->shard.batch, {}};
    rig.Tell(CoreRig::kTrainer0, fenced);
    const auto again = rig.Shards();
    if (!again.empty()) lease_ = again[0];
    return again;
  }

  CoreRig rig;
  JobId job = 0;
  std::string address;          ///< address of a trainer that attaches
  protocol::ShardLease lease_;  ///< the newest of the only shard
};

TEST_F(StreamBounds, AShardIsTriedSoOftenAndTheLastFailureEndsTheStream) {
  Open(Plan(1));
  ASSERT_TRUE(Attach(5));
  lease_ = rig.Shards().at(0);
  for (std::uint32_t attempt = 1; attempt < kMaxShardAttempts; ++attempt) {
    ASSERT_EQ(FailOnce(absl::StatusCode::kResourceExhausted).size(), 1u) << attempt;
    ASSERT_EQ(rig.Row(job).state, JobState::kRunning) << attempt;
  }
  EXPECT_TRUE(FailOnce(absl::StatusCode::kResourceExhausted).empty());
  const auto* failed = rig.FindFor<protocol::StreamFailed>(CoreRig::kTrainer0);
  ASSERT_NE(failed, nullptr);
  EXPECT_EQ(failed->outcome.code, static_cast<int>(absl::StatusCode::kResourceExhausted));
  EXPECT_EQ(TextOf(failed->outcome), StrCat("make shard ", lease_.shard.ToString(), ": why"));
  EXPECT_EQ(rig.Row(job).state, JobState::kFailed);
}

TEST_F(StreamBounds, AnAttemptThatWasVoidIsNone) {
  Open(Plan(1));
  ASSERT_TRUE(Attach(5));
  lease_ = rig.Shards().at(0);
  for (std::uint32_t attempt = 0; attempt < 2 * kMaxShardAttempts; ++attempt) {
    const auto code =
        attempt % 2 == 0 ? absl::StatusCode::kCancelled : absl::StatusCode::kFailedPrecondition;
    ASSERT_EQ(FailOnce(code).size(), 1u) << attempt;
  }
  EXPECT_EQ(rig.Row(job).state, JobState::kRunning);
}

TEST_F(StreamBounds, AShardWhoseEveryAttemptIsVoidEndsTheStreamWithItsReason) {
  Open(Plan(1));
  ASSERT_TRUE(Attach(5));
  lease_ = rig.Shards().at(0);
  constexpr absl::StatusCode kVoid[] = {absl::StatusCode::kFailedPrecondition,
                                        absl::StatusCode::kAlreadyExists,
                                        absl::StatusCode::kCancelled};
  for (std::uint32_t attempt = 1; attempt < kMaxVoidAttempts; ++attempt) {
    ASSERT_EQ(FailOnce(kVoid[attempt % 3]).size(), 1u) << attempt;
    ASSERT_EQ(rig.Row(job).state, JobState::kRunning) << attempt;
  }
  EXPECT_TRUE(FailOnce(kVoid[0]).empty());
  const auto* failed = rig.FindFor<protocol::StreamFailed>(CoreRig::kTrainer0);
  ASSERT_NE(failed, nullptr);
  EXPECT_EQ(failed->outcome.code, static_cast<int>(kVoid[0]));
  EXPECT_EQ(TextOf(failed->outcome), StrCat("make shard ", lease_.shard.ToString(), ": why"));
  EXPECT_EQ(rig.Row(job).state, JobState::kFailed);
}

TEST_F(StreamBounds, AShardThatIsDeliveredAgainAndAgainAndNeverCountedEndsTheStream) {
  Open(Plan(1));
  ASSERT_TRUE(Attach(5));
  lease_ = rig.Shards().at(0);
  const auto deliver = [this] {
    Return(lease_, {});
    rig.Pass(CoreOptions{}.count_wait_ms, {CoreRig::kAgent, CoreRig::kTrainer0});
  };
  for (std::uint32_t attempt = 1; attempt < kMaxShardAttempts; ++attempt) {
    deliver();
    ASSERT_EQ(Fenced().size(), 1u) << attempt;
    ASSERT_EQ(rig.Row(job).state, JobState::kRunning) << attempt;
  }
  deliver();
  const auto* failed = rig.FindFor<protocol::StreamFailed>(CoreRig::kTrainer0);
  ASSERT_NE(failed, nullptr);
  EXPECT_EQ(TextOf(failed->outcome),
            StrCat("make shard ", lease_.shard.ToString(),
                   ": it was delivered, and rank 0 did not count it, at the last of 16 attempts"));
  EXPECT_EQ(rig.Row(job).state, JobState::kFailed);
}

TEST_F(StreamBounds, WhyOneEndedIsCut) {
  Open(Plan(1));
  ASSERT_TRUE(Attach(5));
  const protocol::ShardLease made = rig.Shards().at(0);
  const std::string before = StrCat("make shard ", made.shard.ToString(), ": ");
  const std::string reason(kMaxOutcomeBytes + 1 - before.size(), 'x');
  Return(made, {static_cast<int>(absl::StatusCode::kDataLoss), reason});
  const auto* failed = rig.FindFor<protocol::StreamFailed>(CoreRig::kTrainer0);
  ASSERT_NE(failed, nullptr);
  EXPECT_EQ(StrCat(TextOf(failed->outcome), "x"), before + reason);
  ASSERT_EQ(rig.Row(job).failed.size(), 1u);
  EXPECT_EQ(TextOf(rig.Row(job).failed[0].outcome).size(), kMaxOutcomeBytes);
}

TEST_F(StreamBounds, SoManyFormerProcessesOfEachRankStayOut) {
  Open(Plan(1, 2), 2);
  ASSERT_TRUE(Attach(1'000, 0, 2));
  ASSERT_TRUE(Attach(1'001, 0, 2));
  for (std::uint64_t incarnation = 1; incarnation <= kMaxDeadIncarnations + 2; ++incarnation) {
    ASSERT_TRUE(Attach(incarnation, 1, 2)) << incarnation;
  }
  EXPECT_FALSE(Attach(1'000, 0, 2)) << "however often the other rank's process was replaced";
  EXPECT_FALSE(Attach(2, 1, 2));
  EXPECT_FALSE(Attach(kMaxDeadIncarnations + 1, 1, 2));
  EXPECT_TRUE(Attach(1, 1, 2)) << "longer ago than is remembered";
}

TEST_F(StreamBounds, TheAddressesOfAllRanksFitAMessage) {
  constexpr std::size_t kSecondBytes = 1 << 20;
  Open(Plan(1, 2), 2);
  address = std::string(kMaxEndpointBytes, 'a');
  EXPECT_FALSE(Attach(5, 0, 2));
  ASSERT_NE(rig.Find<protocol::RequestFailed>(), nullptr);
  EXPECT_EQ(TextOf(rig.Find<protocol::RequestFailed>()->outcome),
            StrCat("attach trainer: stream ", job,
                   ": the addresses of its ranks take more than 5242880 bytes"));
  address = std::string(kMaxEndpointBytes - kSecondBytes, 'a');
  EXPECT_TRUE(Attach(5, 0, 2));
  address = std::string(kSecondBytes, 'a');
  EXPECT_FALSE(Attach(6, 1, 2)) << "together they are too long";
  address = std::string(kSecondBytes - 1'000, 'a');
  EXPECT_TRUE(Attach(6, 1, 2));
  EXPECT_TRUE(Attach(7, 1, 2)) << "in place of the one before";
  rig.Tell(CoreRig::kWorker0, protocol::FetchStream{job, 0});
  const auto* described = rig.Find<protocol::StreamDescribed>();
  ASSERT_NE(described, nullptr);
  ASSERT_EQ(described->trainers.size(), 2u);
  EXPECT_TRUE(protocol::Encode({protocol::kProtocolVersion, 1, 7, *described}).ok());
}

class ImageMakers : public StreamBounds {
 protected:
  /// The worker that makes the first image again in the next epoch. Worker 1 made it, the only one
  /// then; worker 0 made all others, and is the one that is chosen where nothing is known.
  std::uint32_t MakerInTheNextEpoch(std::size_t images) {
    Open(Plan(images));
    rig.AddWorker(1);
    rig.Exited(0, 100);
    EXPECT_TRUE(Attach(5, 0, 1, 0));
    EXPECT_EQ(Make(), 1u);
    rig.AddWorker(0, 200);
    for (std::size_t image = 1; image < images; ++image) EXPECT_EQ(Make(), 0u) << image;
    return Make();
  }

 private:
  /// The next batch comes and goes: who made it.
  std::uint32_t Make() {
    protocol::AnnounceSlots free;
    free.stream = job;
    free.slots.push_back({0, ++generation_, SlotState::kFree, 0, 0, {}});
    rig.Tell(CoreRig::kTrainer0, free);
    const auto shards = rig.Shards();
    if (shards.size() != 1) return UINT32_MAX;
    const bool first = rig.FindFor<protocol::LeasesGranted>(CoreRig::kWorker0) != nullptr;
    const std::uint32_t worker = first ? 0 : 1;
    protocol::ShardsReturned returned;
    returned.items.push_back({shards[0].lease, job, shards[0].shard, {}});
    rig.Tell(CoreRig::kWorker0 + worker, returned);
    protocol::ShardsCounted counted;
    counted.stream = job;
    counted.items.push_back({shards[0].lease, shards[0].shard});
    rig.Tell(CoreRig::kTrainer0, counted);
    return worker;
  }

  std::uint64_t generation_ = 0;
};

TEST_F(ImageMakers, AreKnownOfSoManyImages) { EXPECT_EQ(MakerInTheNextEpoch(kMaxMakersKnown), 1u); }

TEST_F(ImageMakers, AreForgottenOfTheImageKnownLongestForOneMore) {
  EXPECT_EQ(MakerInTheNextEpoch(kMaxMakersKnown + 1), 0u);
}

}  // namespace
}  // namespace patchbay::scheduler
