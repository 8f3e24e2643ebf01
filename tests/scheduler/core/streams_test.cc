#include <gtest/gtest.h>

#include "scheduler/policy/limits.h"
#include "tests/scheduler/core/streaming.h"

namespace patchbay::scheduler {
namespace {

using protocol::JobState;
using protocol::SlotState;

TEST_F(Streaming, EveryLeaseCarriesAGrantLowestBatchFirst) {
  Attach();
  const auto shards = rig.Shards();
  ASSERT_EQ(shards.size(), 2u) << "one being made, one being read";
  EXPECT_EQ(shards[0].shard, (ShardId{0, 0, 0, 0}));
  EXPECT_EQ(shards[1].shard, (ShardId{0, 0, 0, 1}));
  EXPECT_EQ(shards[1].grant, (Grant{0, 1, 4, 4}));
  EXPECT_EQ(shards[1].first_ordinal, 4u);
}

TEST_F(Streaming, ASlotIsGrantedAgainOnlyUnderAHigherGeneration) {
  Attach(5, 1);
  const auto shards = rig.Shards();
  for (const auto& lease : shards) {
    Return(lease);
    Count(lease);
  }
  protocol::AnnounceSlots again;
  again.stream = job;
  again.slots.push_back({0, 1, SlotState::kFree, 0, 0, {}});
  rig.Tell(CoreRig::kTrainer0, again);
  EXPECT_TRUE(rig.Shards().empty());
  again.slots[0].generation = 2;
  rig.Tell(CoreRig::kTrainer0, again);
  ASSERT_EQ(rig.Shards().size(), 2u);
  EXPECT_EQ(rig.Shards()[0].grant.slot_generation, 2u);
  EXPECT_EQ(rig.Shards()[0].shard.batch, 1u);
}

TEST_F(Streaming, VoidRangeIsLeasedAgainOnlyAfterTheTrainerFenced) {
  rig.AddWorker(1);
  Attach(5, 1);
  const auto shards = rig.Shards();
  ASSERT_EQ(shards.size(), 2u);
  rig.Exited(0, 100);
  EXPECT_TRUE(rig.Shards().empty());
  const auto* fence = rig.FindFor<protocol::FenceShard>(CoreRig::kTrainer0);
  ASSERT_NE(fence, nullptr);
  EXPECT_EQ(fence->worker_pid, 1000);
  const protocol::FenceShard copy = *fence;
  Fenced(copy, 0);
  EXPECT_TRUE(rig.Shards().empty()) << "its worker died with it: it is made alone now";
  Return(shards[0].shard == copy.shard ? shards[1] : shards[0], absl::StatusCode::kOk, 1);
  ASSERT_EQ(rig.Shards().size(), 1u);
  EXPECT_EQ(rig.Shards()[0].shard, copy.shard);
  EXPECT_GT(rig.Shards()[0].lease, copy.lease);
}

TEST_F(Streaming, ADeliveredShardThatCountsByAnOlderLeaseIsFencedForTheNewerOne) {
  const protocol::FenceShard fence = LoseOneOfTwoWorkers();
  Fenced(fence, 0);
  ASSERT_EQ(rig.Shards().size(), 1u);
  const protocol::ShardLease newer = rig.Shards()[0];
  Return(newer, absl::StatusCode::kOk, 1);
  EXPECT_EQ(rig.Find<protocol::FenceShard>(), nullptr);
  protocol::ShardLease older = newer;
  older.lease = fence.lease;
  Count(older);
  const auto* again = rig.FindFor<protocol::FenceShard>(CoreRig::kTrainer0);
  ASSERT_NE(again, nullptr) << "the newer one's bytes may still come";
  EXPECT_EQ(again->lease, newer.lease);
  EXPECT_EQ(again->worker_pid, 0);
}

TEST_F(Streaming, GrantsFollowABatchToItsSpareSlot) {
  const protocol::FenceShard fence = LoseOneOfTwoWorkers();
  Fenced(fence, 7, 3);
  ASSERT_EQ(rig.Shards().size(), 1u);
  EXPECT_EQ(rig.Shards()[0].grant.slot, 7u);
  EXPECT_EQ(rig.Shards()[0].grant.slot_generation, 3u);
}

TEST_F(Streaming, NewsOfBeforeABatchMovedToItsSpareSlotMakesNothingAgain) {
  rig.AddWorker(1);
  Attach(5, 1);
  const std::vector<protocol::ShardLease> shards = rig.Shards();
  rig.Exited(0, 100);
  const protocol::FenceShard fence = *rig.FindFor<protocol::FenceShard>(CoreRig::kTrainer0);
  const protocol::ShardLease& other = shards[shards[0].shard == fence.shard ? 1 : 0];
  Return(other, absl::StatusCode::kOk, 1);
  Count(other);
  Fenced(fence, 7, 3);
  const protocol::ShardLease again = rig.Shards().at(0);
  Return(again, absl::StatusCode::kOk, 1);
  Count(again);
  protocol::AnnounceSlots late;
  late.stream = job;
  late.slots.push_back({fence.grant.slot,
                        fence.grant.slot_generation,
                        SlotState::kFilling,
                        fence.shard.epoch,
                        fence.shard.batch,
                        {}});
  rig.Tell(CoreRig::kTrainer0, late);
  EXPECT_TRUE(rig.Shards().empty()) << "a batch that is whole in slot 7 is made again in slot 0";
  late.slots[0] = {fence.grant.slot, fence.grant.slot_generation + 2, SlotState::kFree, 0, 0, {}};
  rig.Tell(CoreRig::kTrainer0, late);
  ASSERT_EQ(rig.Shards().size(), 2u) << "the slot came back, and holds the next batch";
  EXPECT_EQ(rig.Shards()[0].grant.slot, fence.grant.slot);
}

TEST_F(Streaming, AStreamThatNobodyCanDeliverToEndsWithTheReason) {
  Attach(5, 1);
  const std::vector<PeerId> alive = {CoreRig::kAgent, CoreRig::kWorker0, CoreRig::kTrainer0};
  const protocol::StreamFailed* failed = nullptr;
  std::vector<protocol::ShardLease> shards = rig.Shards();
  for (int seconds = 0; failed == nullptr && seconds < 200; ++seconds) {
    for (const protocol::ShardLease& lease : shards) {
      Return(lease, absl::StatusCode::kUnavailable);
      failed = rig.FindFor<protocol::StreamFailed>(CoreRig::kTrainer0);
      if (failed != nullptr) break;
      const auto* fence = rig.FindFor<protocol::FenceShard>(CoreRig::kTrainer0);
      if (fence == nullptr) continue;
      const protocol::FenceShard copy = *fence;
      Fenced(copy, copy.grant.slot);
    }
    if (failed != nullptr) break;
    rig.Pass(1'000, alive);
    shards = rig.Shards();
  }
  ASSERT_NE(failed, nullptr) << "it waits for ever";
  EXPECT_EQ(failed->outcome.code, static_cast<int>(absl::StatusCode::kUnavailable));
  EXPECT_NE(TextOf(failed->outcome).find("why"), std::string::npos) << TextOf(failed->outcome);
}

TEST_F(Streaming, DeliveredButNotCountedIsFencedAfterAWhile) {
  Attach(5, 1);
  Return(rig.Shards().at(0));
  rig.Pass(6'000, {CoreRig::kAgent, CoreRig::kTrainer0});
  EXPECT_NE(rig.FindFor<protocol::FenceShard>(CoreRig::kTrainer0), nullptr);
}

TEST_F(Streaming, BadInputFailsTheStreamAndSaysWhy) {
  Attach();
  Return(rig.Shards().at(0), absl::StatusCode::kDataLoss);
  const auto* failed = rig.FindFor<protocol::StreamFailed>(CoreRig::kTrainer0);
  ASSERT_NE(failed, nullptr);
  EXPECT_EQ(failed->outcome.code, static_cast<int>(absl::StatusCode::kDataLoss));
  EXPECT_EQ(rig.Row(job).state, JobState::kFailed);
}

TEST_F(Streaming, SilentTrainersLeasesAreGoneWithinThreeSeconds) {
  Attach();
  const auto shards = rig.Shards();
  rig.Pass(3'100);
  const auto* revoked = rig.FindFor<protocol::LeasesRevoked>(CoreRig::kWorker0);
  ASSERT_NE(revoked, nullptr);
  EXPECT_EQ(revoked->leases.size(), shards.size());
  EXPECT_EQ(rig.Row(job).state, JobState::kRunning);
}

TEST_F(Streaming, TheTimeWithoutATrainerCountsFromWhenOneWasHeardLast) {
  Attach();
  EXPECT_EQ(rig.Row(job).unattended_ms, 0u);
  rig.Leave(CoreRig::kTrainer0);
  EXPECT_EQ(rig.Row(job).unattended_ms, 1u) << "its connection is gone";
  rig.Pass(5'000);
  EXPECT_EQ(rig.Row(job).unattended_ms, 5'000u);
  rig.Join(CoreRig::kTrainer0, Role::kOperator, "ops");
  Attach();
  EXPECT_EQ(rig.Row(job).unattended_ms, 0u);
  rig.Tell(CoreRig::kTrainer0, protocol::DetachTrainer{job, 0});
  EXPECT_EQ(rig.Row(job).unattended_ms, 0u) << "it has ended";
}

TEST_F(Streaming, NewTrainerProcessTakesTheRankAndTheOldOneCannotReturn) {
  Attach(5);
  Attach(6);
  EXPECT_NE(rig.Find<protocol::TrainerAttached>(), nullptr);
  Attach(5);
  EXPECT_NE(rig.Find<protocol::RequestFailed>(), nullptr);
}

TEST_F(Streaming, EndsDoneWhenEveryRankDetached) {
  Attach();
  rig.Tell(CoreRig::kTrainer0, protocol::DetachTrainer{job, 0});
  EXPECT_NE(rig.Find<protocol::TrainerDetached>(), nullptr);
  EXPECT_EQ(rig.Row(job).state, JobState::kDone);
  EXPECT_EQ(rig.core().gauges().leases, 0u);
}

TEST_F(Streaming, RetryStartsAFailedStreamAgainButNoneThatIsDoneOrCancelled) {
  const auto refused = [this](std::uint64_t request) {
    rig.Tell(CoreRig::kOps, protocol::RetryJob{job}, request);
    return rig.Find<protocol::RequestFailed>() != nullptr;
  };
  Attach();
  Return(rig.Shards().at(0), absl::StatusCode::kDataLoss);
  ASSERT_EQ(rig.Row(job).state, JobState::kFailed);
  EXPECT_FALSE(refused(8));
  EXPECT_EQ(rig.Row(job).state, JobState::kRunning);
  rig.Tell(CoreRig::kOps, protocol::CancelJob{job}, 9);
  EXPECT_TRUE(refused(10));
  EXPECT_EQ(rig.Row(job).state, JobState::kCancelled);
  job = rig.Submit("another", "stream");
  rig.Finish(CoreRig::kWorker0, rig.Granted().at(0), {}, {}, kPlan);
  Attach(6);
  rig.Tell(CoreRig::kTrainer0, protocol::DetachTrainer{job, 0});
  ASSERT_EQ(rig.Row(job).state, JobState::kDone);
  EXPECT_FALSE(refused(11));
  ASSERT_NE(rig.Find<protocol::JobRetried>(), nullptr);
  EXPECT_EQ(rig.Find<protocol::JobRetried>()->tasks, 0u);
  EXPECT_EQ(rig.Row(job).state, JobState::kDone) << "there is nothing to do again";
}

TEST_F(Streaming, WithoutAWorkerOfItsClassItFailsAfterAWhile) {
  rig.Exited(0, 100);
  Attach();
  rig.Pass(31'000, {CoreRig::kAgent, CoreRig::kTrainer0});
  EXPECT_NE(rig.FindFor<protocol::StreamFailed>(CoreRig::kTrainer0), nullptr);
}

TEST_F(Streaming, GoesBeforeBatchJobs) {
  Attach();
  rig.Submit("batch");
  EXPECT_TRUE(rig.Granted().empty());
}

TEST_F(Streaming, OnlyTheSubmittersKeyMayAttach) {
  rig.Join(CoreRig::kTrainer0, Role::kTrainer, "stranger");
  Attach();
  ASSERT_NE(rig.Find<protocol::RequestFailed>(), nullptr);
  EXPECT_EQ(rig.Find<protocol::RequestFailed>()->outcome.code,
            static_cast<int>(absl::StatusCode::kPermissionDenied));
}

TEST_F(Streaming, AnotherConnectionCannotSpeakForARank) {
  Attach(5, 1);
  const auto shards = rig.Shards();
  rig.Join(CoreRig::kTrainer0 + 1, Role::kOperator, "ops");
  protocol::AnnounceSlots slots;
  slots.stream = job;
  slots.slots.push_back({1, 1, SlotState::kFree, 0, 0, {}});
  protocol::ShardsCounted counted;
  counted.stream = job;
  counted.items.push_back({shards[0].lease, shards[0].shard});
  protocol::ShardFenced fenced;
  fenced.stream = job;
  fenced.shard = shards[0].shard;
  for (const Body& body :
       {Body(slots), Body(counted), Body(fenced), Body(protocol::DetachTrainer{job, 0})}) {
    rig.Tell(CoreRig::kTrainer0 + 1, body);
    const auto* refused = rig.Find<protocol::RequestFailed>();
    ASSERT_NE(refused, nullptr) << body.index();
    EXPECT_EQ(refused->outcome.code, static_cast<int>(absl::StatusCode::kFailedPrecondition));
    EXPECT_TRUE(rig.Shards().empty());
  }
  EXPECT_EQ(rig.Row(job).state, JobState::kRunning);
  Return(shards[0]);
  Count(shards[0]);
  EXPECT_EQ(rig.Find<protocol::RequestFailed>(), nullptr) << "its own still can";
}

TEST_F(Streaming, AShardOfAnotherRankIsNotCounted) {
  Attach(5, 1);
  protocol::ShardLease other = rig.Shards().at(0);
  Return(other);
  other.shard.rank = 1;
  Count(other);
  EXPECT_EQ(rig.Find<protocol::RequestFailed>(), nullptr);
  EXPECT_EQ(rig.Row(job).state, JobState::kRunning);
  rig.Pass(6'000, {CoreRig::kAgent, CoreRig::kTrainer0});
  EXPECT_NE(rig.FindFor<protocol::FenceShard>(CoreRig::kTrainer0), nullptr) << "not counted yet";
}

TEST_F(Streaming, EveryFormerProcessOfARankStaysOut) {
  for (const std::uint64_t incarnation : {5, 6, 7}) Attach(incarnation);
  for (const std::uint64_t incarnation : {5, 6}) {
    Attach(incarnation);
    ASSERT_NE(rig.Find<protocol::RequestFailed>(), nullptr) << incarnation;
    EXPECT_EQ(rig.Find<protocol::RequestFailed>()->outcome.code,
              static_cast<int>(absl::StatusCode::kAborted));
  }
}

TEST_F(Streaming, ARingHasSoManySlotsAndNoMore) {
  Attach(5, kMaxRingSlots + 1);
  ASSERT_NE(rig.Find<protocol::RequestFailed>(), nullptr);
  protocol::AttachTrainer attach;
  attach.stream = job;
  attach.trainer_incarnation = 5;
  attach.endpoint.host_identity = "host";
  for (std::uint32_t i = 0; i < kMaxRingSlots; ++i)
    attach.slots.push_back({i, 1, SlotState::kFull, i / 3, i % 3, {}});
  rig.Tell(CoreRig::kTrainer0, attach);
  EXPECT_NE(rig.Find<protocol::TrainerAttached>(), nullptr);
  protocol::AnnounceSlots more;
  more.stream = job;
  more.slots.push_back({kMaxRingSlots, 1, SlotState::kFree, 0, 0, {}});
  rig.Tell(CoreRig::kTrainer0, more);
  EXPECT_TRUE(rig.Shards().empty()) << "a slot beyond those it attached with";
  more.slots[0] = {0, 2, SlotState::kFree, 0, 0, {}};
  rig.Tell(CoreRig::kTrainer0, more);
  EXPECT_FALSE(rig.Shards().empty()) << "one of them";
}

TEST_F(Streaming, ASlotHoldsNoBatchBehindTheEpochsLast) {
  rig.AddWorker(1);
  Attach(5, 1);
  protocol::AnnounceSlots slots;
  slots.stream = job;
  slots.slots.push_back({1, 1, SlotState::kFilling, 0, 3, {}});
  rig.Tell(CoreRig::kTrainer0, slots);
  EXPECT_TRUE(rig.Shards().empty());
  slots.slots[0].batch = 2;
  rig.Tell(CoreRig::kTrainer0, slots);
  ASSERT_FALSE(rig.Shards().empty());
  EXPECT_EQ(rig.Shards()[0].shard, (ShardId{0, 2, 0, 0}));
}

TEST_F(Streaming, SoManyAreOpenAndNoMore) {
  Attach(5, 0);
  for (std::size_t i = 1; i <= kMaxStreams; ++i) {
    job = rig.Submit(StrCat("key ", i), "stream");
    ASSERT_FALSE(rig.Granted().empty()) << i;
    rig.Finish(CoreRig::kWorker0, rig.Granted().at(0), {}, {}, kPlan);
    Attach(5, 0);
    ASSERT_EQ(rig.Find<protocol::TrainerAttached>() != nullptr, i < kMaxStreams) << i;
  }
  EXPECT_EQ(rig.Find<protocol::RequestFailed>()->outcome.code,
            static_cast<int>(absl::StatusCode::kFailedPrecondition));
  EXPECT_EQ(rig.Row(job).state, JobState::kFailed);
}

TEST_F(Streaming, EndsWhenItsKeyIsRevokedAndNoOther) {
  Attach();
  rig.Join(60, Role::kSubmitter, "ann");
  protocol::SubmitJob submit;
  submit.submission_key = "anns";
  submit.kind = "stream";
  submit.root.op = "stream.plan";
  rig.Tell(60, submit);
  const JobId anns = rig.Find<protocol::JobSubmitted>()->job;
  rig.Revoke("ann");
  EXPECT_EQ(rig.Row(anns).state, JobState::kFailed) << "although nobody had attached";
  EXPECT_EQ(rig.Row(job).state, JobState::kRunning);
  rig.Revoke("ops");
  EXPECT_TRUE(rig.Shards().empty());
  const protocol::JobRow row = rig.Row(job);
  EXPECT_EQ(row.state, JobState::kFailed);
  ASSERT_EQ(row.failed.size(), 1u);
  EXPECT_EQ(TextOf(row.failed[0].outcome), "stream: the key ops was revoked");
  EXPECT_EQ(rig.core().CheckInvariants(), absl::OkStatus());
}

TEST_F(Streaming, RefusesATrainerWhoseEpochsAreUsedUp) {
  protocol::AttachTrainer attach;
  attach.stream = job;
  attach.trainer_incarnation = 5;
  attach.first_epoch = kMaxEpoch + 1;
  rig.Tell(CoreRig::kTrainer0, attach);
  const auto* failed = rig.FindFor<protocol::RequestFailed>(CoreRig::kTrainer0);
  ASSERT_NE(failed, nullptr);
  EXPECT_NE(TextOf(failed->outcome).find("epoch 65536 is past"), std::string::npos);
  attach.first_epoch = kMaxEpoch;
  rig.Tell(CoreRig::kTrainer0, attach);
  EXPECT_NE(rig.Find<protocol::TrainerAttached>(), nullptr);
}

TEST_F(Streaming, PlanOutsideTheLimitsOrForOtherRanksFailsTheJob) {
  std::string two_ranks = kPlan;
  two_ranks.replace(two_ranks.find("world_size\":1"), 13, "world_size\":2");
  for (const std::string& plan : {std::string(R"({"plan":"p","geometry":{}})"), two_ranks}) {
    const JobId bad = rig.Submit(plan, "stream");
    rig.Finish(CoreRig::kWorker0, rig.Granted().at(0), {}, {}, plan);
    EXPECT_EQ(rig.Row(bad).state, JobState::kFailed) << plan;
  }
}

TEST_F(Streaming, ABatchIsNotMadeInASlotThatTurnsOutToBeAnothers) {
  Attach(5, 2);
  rig.Restart();
  rig.AddAgent();
  rig.AddWorker();
  rig.Join(CoreRig::kTrainer0, Role::kOperator, "ops");
  Attach(5, 2);
  const auto* sent = rig.FindFor<protocol::FenceShard>(CoreRig::kTrainer0);
  ASSERT_NE(sent, nullptr);
  protocol::ShardFenced answer;  // late shards filled slot 1 with batch 0, and the trainer took it
  answer.stream = job;
  answer.lease = sent->lease;
  for (const ShardId& shard :
       {ShardId{0, 0, 0, 0}, ShardId{0, 0, 0, 1}, ShardId{0, 1, 0, 0}, ShardId{0, 1, 0, 1}}) {
    answer.shard = shard;
    answer.already_counted = shard.batch == 0;
    answer.row = {0, 1, SlotState::kFree, 0, 0, {}};
    if (shard.batch == 1) answer.row = {1, 1, SlotState::kFull, 0, 0, {0, 1}};
    rig.Tell(CoreRig::kTrainer0, answer);
    EXPECT_TRUE(rig.Shards().empty());
    EXPECT_EQ(rig.core().CheckInvariants(), absl::OkStatus());
  }
  protocol::AttachTrainer again;
  again.stream = job;
  again.trainer_incarnation = 5;
  again.endpoint.host_identity = "host";
  again.first_batch = 1;
  again.slots = {{0, 1, SlotState::kFree, 0, 0, {}}, {1, 1, SlotState::kFull, 0, 0, {0, 1}}};
  rig.Tell(CoreRig::kTrainer0, again);
  const auto* fence = rig.FindFor<protocol::FenceShard>(CoreRig::kTrainer0);
  ASSERT_NE(fence, nullptr);
  EXPECT_EQ(fence->shard.batch, 1u);
  EXPECT_EQ(fence->grant.slot, 0u);
  EXPECT_EQ(rig.core().CheckInvariants(), absl::OkStatus());
}

TEST_F(Streaming, ASlotThatRestsForAnotherBatchIsNotGrantedAgain) {
  Attach();
  const auto shards = rig.Shards();
  ASSERT_EQ(shards.size(), 2u);
  const auto refused = [&](const protocol::ShardLease& lease) {
    Return(lease, absl::StatusCode::kFailedPrecondition);
    const auto* fence = rig.FindFor<protocol::FenceShard>(CoreRig::kTrainer0);
    ASSERT_NE(fence, nullptr);
    protocol::ShardFenced fenced;
    fenced.stream = job;
    fenced.lease = fence->lease;
    fenced.shard = fence->shard;
    fenced.row = {0, 1, SlotState::kResting, 0, 1, {}};
    rig.Tell(CoreRig::kTrainer0, fenced);
  };
  refused(shards[0]);
  for (const auto& lease : rig.Shards()) EXPECT_EQ(lease.grant.slot, 1u) << "slot 0 rests";
  EXPECT_TRUE(rig.core().CheckInvariants().ok());
  refused(shards[1]);
  for (const auto& lease : rig.Shards()) EXPECT_EQ(lease.grant.slot, 1u);
  EXPECT_TRUE(rig.core().CheckInvariants().ok());
  protocol::AnnounceSlots announce;
  announce.stream = job;
  announce.slots.push_back({2, 1, SlotState::kFree, 0, 0, {}});
  rig.Tell(CoreRig::kTrainer0, announce);
  std::vector<protocol::FenceShard> fences;
  for (const SendAction& send : rig.sent()) {
    if (const auto* fence = std::get_if<protocol::FenceShard>(&send.body)) fences.push_back(*fence);
  }
  ASSERT_EQ(fences.size(), 2u) << "the first batch goes there";
  std::vector<protocol::ShardLease> granted;
  for (const protocol::FenceShard& fence : fences) {
    EXPECT_EQ(fence.shard.batch, 0u);
    Fenced(fence, 2);
  }
  EXPECT_TRUE(rig.core().CheckInvariants().ok());
}

TEST_F(Streaming, AFreeSlotThatRestsAtTheTrainerIsNotGranted) {
  protocol::AttachTrainer attach;
  attach.stream = job;
  attach.trainer_incarnation = 5;
  attach.endpoint.host_identity = "host";
  attach.slots.push_back({0, 1, SlotState::kFree, 0, 0, {}});
  attach.slots.push_back({0, 1, SlotState::kResting, 0, 2, {}});
  attach.slots.push_back({1, 1, SlotState::kFree, 0, 0, {}});
  rig.Tell(CoreRig::kTrainer0, attach);
  ASSERT_FALSE(rig.Shards().empty());
  for (const auto& lease : rig.Shards()) EXPECT_EQ(lease.grant.slot, 1u);
}

TEST_F(Streaming, ASlotThatComesBackWhileALeasePointsIntoItIsNotGranted) {
  Attach(5, 1);
  const auto shards = rig.Shards();
  ASSERT_EQ(shards.size(), 2u);
  protocol::ShardLease of_its_own = shards[0];
  of_its_own.lease = {1, 999};  // no worker has it: the one that has the shard may still write
  Count(of_its_own);
  Count(shards[1]);
  protocol::AnnounceSlots again;
  again.stream = job;
  again.slots.push_back({0, 2, SlotState::kFree, 0, 0, {}});
  rig.Tell(CoreRig::kTrainer0, again);
  EXPECT_TRUE(rig.Shards().empty());
  EXPECT_TRUE(rig.core().CheckInvariants().ok());
  Return(shards[0], absl::StatusCode::kCancelled);
  const auto* fence = rig.FindFor<protocol::FenceShard>(CoreRig::kTrainer0);
  ASSERT_NE(fence, nullptr);
  const protocol::FenceShard copy = *fence;
  Fenced(copy, 0, 2);
  ASSERT_FALSE(rig.Shards().empty());
  EXPECT_EQ(rig.Shards()[0].grant.slot_generation, 2u);
}

}  // namespace
}  // namespace patchbay::scheduler
