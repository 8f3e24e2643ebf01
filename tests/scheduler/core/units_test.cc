// Streams with units: who has which, what becomes of them, and when the stream ends.
#include <map>
#include <vector>

#include <gtest/gtest.h>

#include "tests/scheduler/core/core_rig.h"

namespace patchbay::scheduler {
namespace {

using protocol::FinishUnit;
using protocol::JobState;
using protocol::SlotState;
using protocol::UnitsAssigned;

/// Four units: batches 0 and 1, then one batch each; a batch is one shard of at most 4 patches.
constexpr char kMapPlan[] =
    R"({"plan":"p","manifest":{},"geometry":{"patches_per_epoch":20,"global_batch":4,"tail":"keep",)"
    R"("world_size":1,"shard_patches":4,"numerics":"cpu","units":[[8,1],[4,3]]}})";

class Units : public testing::Test {
 protected:
  static constexpr PeerId kOne = CoreRig::kTrainer0, kTwo = kOne + 1;

  void SetUp() override {
    Back();
    job = rig.Submit("key", "stream");
    rig.Finish(CoreRig::kWorker0, rig.Granted().at(0), {}, {}, kMapPlan);
  }
  /// The peers of a scheduler that has just started.
  void Back() {
    rig.AddAgent();
    rig.AddWorker();
    rig.Join(kOne, Role::kOperator, "ops");
    rig.Join(kTwo, Role::kOperator, "ops");
  }
  static std::uint32_t RankOf(PeerId peer) { return static_cast<std::uint32_t>(7000 + peer); }
  protocol::AttachTrainer Ring(PeerId peer, std::uint32_t slots = 1) const {
    protocol::AttachTrainer attach;
    attach.stream = job;
    attach.rank = RankOf(peer);
    attach.trainer_incarnation = peer;
    attach.endpoint.host_identity = "host";
    for (std::uint32_t i = 0; i < slots; ++i)
      attach.slots.push_back({i, 1, SlotState::kFree, 0, 0, {}});
    return attach;
  }
  /// The units that the peer was told last that it has.
  std::vector<std::uint64_t> Attach(PeerId peer, std::uint32_t slots = 1) {
    Note();
    rig.Tell(peer, Ring(peer, slots));
    Note();
    return Told(peer);
  }
  std::vector<std::uint64_t> Told(PeerId peer) {
    std::vector<std::uint64_t> units;
    for (const SendAction& send : rig.sent()) {
      const auto* told = std::get_if<UnitsAssigned>(&send.body);
      if (told == nullptr || send.peer != peer) continue;
      units.clear();
      for (const AssignedUnit& one : told->units) units.push_back(one.unit);
    }
    return units;
  }
  /// The shard of that batch was made, and its slot comes back.
  void TakeBatch(PeerId peer, std::uint64_t batch, std::uint64_t generation) {
    Note();
    const ShardId shard{0, batch, RankOf(peer), 0};
    protocol::ShardsCounted counted;
    counted.stream = job;
    counted.rank = RankOf(peer);
    counted.items.push_back({leases.at(shard), shard});
    rig.Tell(peer, counted, 0);
    Note();
    protocol::AnnounceSlots slots;
    slots.stream = job;
    slots.rank = RankOf(peer);
    slots.slots.push_back({0, generation, SlotState::kFree, 0, 0, {}});
    rig.Tell(peer, slots, 0);
  }
  void Note() {
    for (const protocol::ShardLease& one : rig.Shards()) leases[one.shard] = one.lease;
  }
  void Finish(PeerId peer, std::uint64_t unit, std::int32_t code = 0) {
    FinishUnit finish{job, RankOf(peer), unit, {}};
    finish.outcome.code = code;
    rig.Tell(peer, finish);
    EXPECT_NE(rig.Find<protocol::UnitFinished>(), nullptr);
  }

  CoreRig rig;
  JobId job = 0;
  std::map<ShardId, LeaseNumber> leases;
};

using Numbers = std::vector<std::uint64_t>;

TEST_F(Units, EachConsumerGetsTheLowestThatNobodyHas) {
  EXPECT_EQ(Attach(kOne), (Numbers{0}));
  EXPECT_EQ(Attach(kTwo), (Numbers{1}));
  TakeBatch(kOne, 0, 2);
  EXPECT_EQ(Told(kOne), Numbers()) << "its unit has another batch for the slot";
  TakeBatch(kOne, 1, 3);
  EXPECT_EQ(Told(kOne), (Numbers{0, 2})) << "the next image is made while this one is used";
  EXPECT_TRUE(rig.core().CheckInvariants().ok());
}

TEST_F(Units, AsManyAreAssignedAsSlotsNeed) {
  EXPECT_EQ(Attach(kOne, 3), (Numbers{0, 1}));
  EXPECT_EQ(Attach(kTwo, 3), (Numbers{2, 3}));
}

TEST_F(Units, TheStreamIsDoneWhenAllAreFinished) {
  Attach(kOne, 5);
  for (const std::uint64_t unit : {3, 1, 0}) Finish(kOne, unit);
  EXPECT_EQ(rig.Row(job).state, JobState::kRunning);
  EXPECT_EQ(rig.Row(job).weight_done, 3u);
  EXPECT_EQ(rig.Row(job).weight_total, 4u);
  Finish(kOne, 2);
  const auto* told = rig.FindFor<UnitsAssigned>(kOne);
  ASSERT_NE(told, nullptr);
  EXPECT_TRUE(told->all_finished);
  EXPECT_EQ(rig.Row(job).state, JobState::kDone);
  Finish(kTwo, 2);
  rig.Tell(kTwo, Ring(kTwo));
  ASSERT_NE(rig.Find<UnitsAssigned>(), nullptr) << "who comes late is told that there is nothing";
  EXPECT_TRUE(rig.Find<UnitsAssigned>()->all_finished);
}

TEST_F(Units, AFailedOneIsNamedAndARetryOpensItAgain) {
  Attach(kOne, 5);
  for (const std::uint64_t unit : {0, 1, 2}) Finish(kOne, unit);
  Finish(kOne, 3, 13);
  Finish(kOne, 3);  // the first outcome counts
  const protocol::JobRow row = rig.Row(job);
  EXPECT_EQ(row.state, JobState::kPartlyFailed);
  ASSERT_EQ(row.failed.size(), 2u);
  EXPECT_EQ(row.failed[1].label, "unit 3");
  EXPECT_EQ(row.failed[1].group, 4u);
  rig.Tell(CoreRig::kOps, protocol::RetryJob{job});
  EXPECT_EQ(rig.Row(job).state, JobState::kRunning);
  EXPECT_EQ(Attach(kTwo, 5), (Numbers{3}));
}

TEST_F(Units, OnlyWhatTheJournalHasIsAnswered) {
  CoreRig slow(false);
  slow.AddAgent();
  slow.Sync();
  slow.AddWorker();
  slow.Sync();
  slow.Submit("key", "stream");
  slow.Sync();
  slow.Finish(CoreRig::kWorker0, slow.Granted().at(0), {}, {}, kMapPlan);
  slow.Sync();
  slow.Join(kOne, Role::kOperator, "ops");
  slow.Tell(kOne, FinishUnit{1, 9, 2, {}});
  EXPECT_EQ(slow.Find<protocol::UnitFinished>(), nullptr);
  slow.Sync();
  EXPECT_NE(slow.Find<protocol::UnitFinished>(), nullptr);
}

TEST_F(Units, AConsumerThatLeavesGivesItsUnitsBackAtOnce) {
  Attach(kOne, 3);
  rig.Tell(kOne, protocol::DetachTrainer{job, RankOf(kOne)});
  EXPECT_EQ(rig.Row(job).state, JobState::kRunning) << "consumers come and go";
  rig.Tell(kOne, protocol::DetachTrainer{job, 0});
  EXPECT_EQ(rig.Row(job).state, JobState::kRunning) << "no rank of theirs ends the stream";
  EXPECT_EQ(Attach(kTwo, 3), (Numbers{0, 1}));
}

TEST_F(Units, ALowerUnitThatComesBackGoesToAHigherEpoch) {
  Attach(kOne);
  Attach(kTwo);
  rig.Tell(kOne, protocol::DetachTrainer{job, RankOf(kOne)});
  TakeBatch(kTwo, 2, 2);
  const auto* told = rig.FindFor<UnitsAssigned>(kTwo);
  ASSERT_NE(told, nullptr);
  ASSERT_EQ(told->units.size(), 2u);
  EXPECT_EQ(told->units[0], (AssignedUnit{0, 1}));
  EXPECT_EQ(told->units[1], (AssignedUnit{1, 0}));
}

TEST_F(Units, AUnitWithWhichThreeConsumersDieFails) {
  for (PeerId peer = kTwo + 1; peer < kTwo + 4; ++peer) {
    rig.Join(peer, Role::kOperator, "ops");
    EXPECT_EQ(Attach(peer, 3), (Numbers{0, 1})) << "only the first of its units is suspected";
    rig.Leave(peer);
    rig.Pass(4000);
  }
  EXPECT_EQ(Attach(kOne, 3), (Numbers{1, 2, 3}));
  const protocol::JobRow row = rig.Row(job);
  ASSERT_EQ(row.failed.size(), 1u);
  EXPECT_NE(row.failed[0].outcome.cause.find("3 consumers"), std::string::npos);
}

TEST_F(Units, AFrozenConsumerLosesItsUnitsAndStartsOver) {
  Attach(kOne, 3);
  rig.Pass(4000);
  EXPECT_EQ(Attach(kTwo, 3), (Numbers{0, 1}));
  rig.Tell(kOne, Ring(kOne, 3));
  const auto* refused = rig.Find<protocol::RequestFailed>();
  ASSERT_NE(refused, nullptr);
  EXPECT_EQ(refused->outcome.code, static_cast<int>(absl::StatusCode::kAborted));
  EXPECT_TRUE(rig.core().CheckInvariants().ok());
}

TEST_F(Units, AShardThatCannotBeMadeFailsItsUnitAlone) {
  Attach(kOne, 1);
  protocol::ShardsReturned returned;
  const protocol::ShardLease lease = rig.Shards().at(0);
  returned.items.push_back(
      {lease.lease, job, lease.shard, {static_cast<int>(absl::StatusCode::kDataLoss), "bad tile"}});
  rig.Tell(CoreRig::kWorker0, returned);
  const auto* failed = rig.FindFor<protocol::StreamFailed>(kOne);
  ASSERT_NE(failed, nullptr) << "it starts over";
  EXPECT_EQ(failed->outcome.code, static_cast<int>(absl::StatusCode::kAborted));
  EXPECT_EQ(rig.Row(job).state, JobState::kRunning);
  EXPECT_EQ(Attach(kTwo, 5), (Numbers{1, 2, 3}));
  for (const std::uint64_t unit : {1, 2, 3}) Finish(kTwo, unit);
  EXPECT_EQ(rig.Row(job).state, JobState::kPartlyFailed);
}

TEST_F(Units, AfterARestartConsumersSayWhichTheyHave) {
  Attach(kOne, 3);
  Finish(kOne, 3);
  rig.Restart();
  Back();
  EXPECT_EQ(Attach(kTwo, 3), Numbers()) << "others may have them";
  protocol::AttachTrainer back = Ring(kOne, 3);
  back.units = {{0, 0}, {0, 1}};
  rig.Tell(kOne, back);
  EXPECT_EQ(Told(kOne), (Numbers{0, 1}));
  rig.Pass(4000, {kOne, kTwo, CoreRig::kAgent});
  EXPECT_EQ(Told(kTwo), (Numbers{2})) << "3 is finished, the others are held";
  EXPECT_TRUE(rig.core().CheckInvariants().ok());
}

TEST_F(Units, AfterARestartAFinishedOneIsKeptOnlyUntilItsLastBatch) {
  Attach(kOne, 3);
  Finish(kOne, 0);
  for (const std::uint64_t next : {1, 2}) {
    rig.Restart();
    Back();
    protocol::AttachTrainer back = Ring(kOne);
    back.units = {{0, 0}};
    back.first_batch = next;
    rig.Tell(kOne, back);
    EXPECT_EQ(Told(kOne), next == 1 ? (Numbers{0}) : Numbers()) << next;
  }
}

TEST_F(Units, WhoeverFinishesOneNobodyElseForgetsIt) {
  Attach(kOne);
  rig.Tell(kTwo, FinishUnit{job, RankOf(kOne), 0, {}});
  ASSERT_NE(rig.Find<protocol::UnitFinished>(), nullptr);
  TakeBatch(kOne, 0, 2);
  TakeBatch(kOne, 1, 3);
  EXPECT_EQ(Told(kOne), (Numbers{0, 1})) << "its own word that it is done is still to come";
}

TEST_F(Units, AShardOfAFinishedOneThatCannotBeMadeFailsNothing) {
  Attach(kOne);
  protocol::ShardsReturned returned;
  const protocol::ShardLease lease = rig.Shards().at(0);
  returned.items.push_back(
      {lease.lease, job, lease.shard, {static_cast<int>(absl::StatusCode::kDataLoss), "bad tile"}});
  Finish(kOne, 0);
  const std::size_t records = rig.disk().size();
  rig.Tell(CoreRig::kWorker0, returned);
  EXPECT_EQ(rig.disk().size(), records) << "it has its outcome";
  EXPECT_TRUE(rig.Row(job).failed.empty());
}

TEST_F(Units, AfterARestartTheFirstThatNamesAUnitHasIt) {
  Attach(kOne, 3);
  rig.Restart();
  Back();
  protocol::AttachTrainer one = Ring(kOne, 3), two = Ring(kTwo, 3);
  one.units = two.units = {{0, 1}};
  rig.Tell(kTwo, two);
  EXPECT_EQ(Told(kTwo), (Numbers{1}));
  rig.Tell(kOne, one);
  const auto* refused = rig.Find<protocol::RequestFailed>();
  ASSERT_NE(refused, nullptr);
  EXPECT_EQ(refused->outcome.code, static_cast<int>(absl::StatusCode::kAborted));
}

TEST_F(Units, WhatIsNamedAndNotThereIsRefused) {
  protocol::AttachTrainer attach = Ring(kOne);
  attach.units = {{0, 4}};
  rig.Tell(kOne, attach);
  EXPECT_NE(rig.Find<protocol::RequestFailed>(), nullptr);
  rig.Tell(kOne, FinishUnit{job, RankOf(kOne), 4, {}});
  EXPECT_NE(rig.Find<protocol::RequestFailed>(), nullptr);
}

TEST_F(Units, AStreamWhoseLastRecordIsLostEndsAfterTheRestart) {
  Attach(kOne, 5);
  for (const std::uint64_t unit : {0, 1, 2, 3}) Finish(kOne, unit);
  rig.disk().pop_back();  // the end of the stream
  rig.Restart();
  EXPECT_EQ(rig.Row(job).state, JobState::kDone);
}

}  // namespace
}  // namespace patchbay::scheduler
