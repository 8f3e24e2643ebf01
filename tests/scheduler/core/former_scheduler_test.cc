// Streams after a restart of the scheduler: what its predecessor granted, and what comes of it.
#include <gtest/gtest.h>

#include "tests/scheduler/core/streaming.h"

namespace patchbay::scheduler {
namespace {

using protocol::SlotState;

TEST_F(Streaming, AfterARestartOlderLeasesAreFencedBeforeTheFirstGrant) {
  Attach(5, 1);
  rig.Restart();
  rig.AddAgent();
  rig.AddWorker();
  rig.Join(CoreRig::kTrainer0, Role::kOperator, "ops");
  Attach(5, 1);
  EXPECT_TRUE(rig.Shards().empty());
  const auto* fence = rig.FindFor<protocol::FenceShard>(CoreRig::kTrainer0);
  ASSERT_NE(fence, nullptr);
  EXPECT_EQ(fence->lease, (LeaseNumber{rig.core().incarnation(), 0}));
  protocol::FenceShard copy = *fence;
  Fenced(copy, 0);
  EXPECT_TRUE(rig.Shards().empty()) << "a shard is unknown, and so is where its batch lies";
  copy.shard.shard ^= 1;
  Fenced(copy, 0);
  EXPECT_EQ(rig.Shards().size(), 2u);
}

TEST_F(Streaming, AfterARestartOlderLeasesAreFencedThoughTheAttachNamedNoSlots) {
  Attach(5, 1);
  rig.Restart();
  rig.AddAgent();
  rig.AddWorker();
  rig.Join(CoreRig::kTrainer0, Role::kOperator, "ops");
  Attach(5, 0);  // asked for before there was a ring, and late
  protocol::AnnounceSlots ring;
  ring.stream = job;
  ring.slots.push_back({0, 1, SlotState::kFree, 0, 0, {}});
  rig.Tell(CoreRig::kTrainer0, ring);
  EXPECT_TRUE(rig.Shards().empty());
  EXPECT_NE(rig.FindFor<protocol::FenceShard>(CoreRig::kTrainer0), nullptr);
}

TEST_F(Streaming, SlotsThatAFormerSchedulerBoundTheOtherWayRoundChangePlaces) {
  Attach(5, 2);
  rig.Restart();
  rig.AddAgent();
  rig.AddWorker();
  rig.Join(CoreRig::kTrainer0, Role::kOperator, "ops");
  Attach(5, 2);
  const auto* sent = rig.FindFor<protocol::FenceShard>(CoreRig::kTrainer0);
  ASSERT_NE(sent, nullptr);
  protocol::FenceShard fence = *sent;
  for (std::uint32_t batch = 0; batch < 2; ++batch) {
    for (std::uint32_t shard = 0; shard < 2; ++shard) {
      fence.shard.batch = batch;
      fence.shard.shard = shard;
      Fenced(fence, 1 - batch);  // batch 0 lies in slot 1, batch 1 in slot 0
    }
  }
  const auto shards = rig.Shards();
  ASSERT_FALSE(shards.empty());
  for (const auto& lease : shards) EXPECT_EQ(lease.grant.slot, 1 - lease.shard.batch);
  EXPECT_EQ(rig.core().CheckInvariants(), absl::OkStatus());
}

TEST_F(Streaming, AfterARestartAnOldLeasesShardCountsOnceItsSlotIsKnown) {
  Attach(5, 2);
  const protocol::ShardLease old = rig.Shards().at(0);
  rig.Restart();
  rig.AddAgent();
  rig.AddWorker();
  rig.Join(CoreRig::kTrainer0, Role::kOperator, "ops");
  Attach(5, 2);
  const auto* sent = rig.FindFor<protocol::FenceShard>(CoreRig::kTrainer0);
  ASSERT_NE(sent, nullptr);
  protocol::ShardFenced answer;
  answer.stream = job;
  answer.lease = sent->lease;
  for (const ShardId& shard : {ShardId{0, 0, 0, 1}, ShardId{0, 1, 0, 0}, ShardId{0, 1, 0, 1}}) {
    answer.shard = shard;
    answer.row = {static_cast<std::uint32_t>(shard.batch), 1, SlotState::kFree, 0, 0, {}};
    rig.Tell(CoreRig::kTrainer0, answer);
  }
  Count(old);
  EXPECT_TRUE(rig.Shards().empty()) << "it may lie in another slot than its batch has here";
  answer.shard = old.shard;
  answer.already_counted = true;
  answer.row = {1, 1, SlotState::kFilling, 0, 0, {old.shard.shard}};
  rig.Tell(CoreRig::kTrainer0, answer);
  const auto shards = rig.Shards();
  ASSERT_FALSE(shards.empty());
  for (const auto& lease : shards) {
    EXPECT_NE(lease.shard, old.shard);
    EXPECT_EQ(lease.grant.slot, 1 - lease.shard.batch);
  }
  EXPECT_EQ(rig.core().CheckInvariants(), absl::OkStatus());
}

TEST_F(Streaming, ASlotThatALateShardBoundBeforeTheFirstGrantIsNotGranted) {
  Attach(5, 1);
  rig.Restart();
  rig.AddAgent();
  rig.Join(CoreRig::kTrainer0, Role::kOperator, "ops");
  Attach(5, 1, {1000});
  protocol::AttachTrainer later;  // the old worker filled batch 0, and the trainer took it
  later.stream = job;
  later.trainer_incarnation = 5;
  later.endpoint.host_identity = "host";
  later.first_batch = 1;
  later.slots.push_back({0, 1, SlotState::kFull, 0, 0, {}});
  later.holders = {1000};
  rig.Tell(CoreRig::kTrainer0, later);
  later.holders = {};
  rig.Tell(CoreRig::kTrainer0, later);
  rig.Pass(1'000, {CoreRig::kAgent, CoreRig::kTrainer0});
  EXPECT_EQ(rig.FindFor<protocol::FenceShard>(CoreRig::kTrainer0), nullptr) << "it is in use";
  protocol::AnnounceSlots released;
  released.stream = job;
  released.slots.push_back({0, 2, SlotState::kFree, 0, 0, {}});
  rig.Tell(CoreRig::kTrainer0, released);
  const auto* fence = rig.FindFor<protocol::FenceShard>(CoreRig::kTrainer0);
  ASSERT_NE(fence, nullptr);
  EXPECT_EQ(fence->shard.batch, 1u);
  EXPECT_EQ(fence->grant.slot_generation, 2u);
  EXPECT_EQ(rig.core().CheckInvariants(), absl::OkStatus());
}

TEST_F(Streaming, ABatchIsMadeThoughItsSlotComesBackFromAnEarlierOne) {
  Attach(5, 2);
  rig.Restart();
  rig.AddAgent();
  rig.AddWorker();
  rig.Join(CoreRig::kTrainer0, Role::kOperator, "ops");
  Attach(5, 2);
  const auto* sent = rig.FindFor<protocol::FenceShard>(CoreRig::kTrainer0);
  ASSERT_NE(sent, nullptr);
  protocol::ShardFenced answer;
  answer.stream = job;
  answer.lease = sent->lease;
  for (const ShardId& shard :
       {ShardId{0, 1, 0, 0}, ShardId{0, 1, 0, 1}, ShardId{0, 0, 0, 0}, ShardId{0, 0, 0, 1}}) {
    answer.shard = shard;  // late shards fill slot 1 with batch 0 between the two pairs
    answer.already_counted = shard.batch == 0;
    answer.row = {static_cast<std::uint32_t>(shard.batch), 1, SlotState::kFree, 0, 0, {}};
    rig.Tell(CoreRig::kTrainer0, answer);
    EXPECT_TRUE(rig.Shards().empty()) << "batch 0 was in a slot that nobody has named";
  }
  protocol::AttachTrainer again;
  again.stream = job;
  again.trainer_incarnation = 5;
  again.endpoint.host_identity = "host";
  again.first_batch = 1;
  again.slots = {{0, 1, SlotState::kFree, 0, 0, {}}, {1, 2, SlotState::kFree, 0, 0, {}}};
  rig.Tell(CoreRig::kTrainer0, again);
  std::vector<protocol::FenceShard> fences;
  for (const SendAction& send : rig.sent()) {
    if (const auto* fence = std::get_if<protocol::FenceShard>(&send.body)) fences.push_back(*fence);
  }
  ASSERT_FALSE(fences.empty());
  EXPECT_EQ(fences.front().shard.batch, 1u) << "batch 1 was never made";
  EXPECT_TRUE(rig.core().CheckInvariants().ok());
}

TEST_F(Streaming, WhatEndedWorkersOfAFormerSchedulerHaveSentMayStillArrive) {
  Attach();
  const auto sent = rig.Shards();
  ASSERT_EQ(sent.size(), 2u);
  rig.Exited(0, 100);
  rig.Restart();  // the journal knows no worker any more
  rig.AddAgent();
  rig.AddWorker(0, 200);
  rig.Join(CoreRig::kTrainer0, Role::kOperator, "ops");
  Attach(5, 1);
  EXPECT_TRUE(rig.Shards().empty()) << "leased before the trainer refuses what is under way";
  const auto* fence = rig.FindFor<protocol::FenceShard>(CoreRig::kTrainer0);
  ASSERT_NE(fence, nullptr);
  EXPECT_GT(fence->lease, sent[1].lease);
  for (const auto& lease : sent) {
    protocol::FenceShard of_shard = *fence;
    of_shard.shard = lease.shard;
    Fenced(of_shard, 0);
  }
  EXPECT_EQ(rig.Shards().size(), 2u);
}

}  // namespace
}  // namespace patchbay::scheduler
