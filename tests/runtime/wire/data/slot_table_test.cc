#include "runtime/wire/data/slot_table.h"

#include <map>
#include <random>
#include <set>

#include "gtest/gtest.h"
#include "tests/runtime/wire/data/stream_fixture.h"

namespace patchbay::data {
namespace {

using testing::HeaderOf;
using testing::SmallGeometry;
using testing::SmallOptions;

SlotTable Make(const SlotTableOptions& options = SmallOptions()) {
  auto table = SlotTable::Create(options);
  EXPECT_TRUE(table.ok()) << table.status();
  return std::move(*table);
}

/// Counts both shards of a whole batch into a slot.
void FillTable(SlotTable& table, Position at, std::uint32_t slot, std::uint64_t generation) {
  const auto shards = ShardsInRank(SmallGeometry(), at.batch, 0);
  for (std::uint32_t s = 0; s < shards; ++s) {
    const auto counted = table.Count(HeaderOf(at, s, slot, generation, 100 + s));
    ASSERT_TRUE(counted.ok()) << counted.status();
    EXPECT_EQ(counted->batch_full, s + 1 == shards);
  }
}

TEST(SlotTable, GoesFromFreeOverFullAndInUseToTheNextGeneration) {
  SlotTable table = Make();
  EXPECT_EQ(table.Report(0).phase, SlotPhase::kFree);
  ASSERT_TRUE(table.Count(HeaderOf({0, 0}, 1, 0, 1, 1)).ok());
  EXPECT_EQ(table.Report(0).phase, SlotPhase::kFilling);
  EXPECT_EQ(table.Report(0).counted, std::vector<std::uint32_t>{1});
  EXPECT_FALSE(table.FullSlot({0, 0}).has_value());
  ASSERT_TRUE(table.Count(HeaderOf({0, 0}, 0, 0, 1, 2)).ok());
  ASSERT_EQ(table.FullSlot({0, 0}), 0u);
  table.Take({0, 0});
  EXPECT_EQ(table.Report(0).phase, SlotPhase::kInUse);
  EXPECT_EQ(table.next(), (Position{0, 1}));
  EXPECT_TRUE(table.Release(0, 1));
  EXPECT_EQ(table.Report(0).phase, SlotPhase::kFree);
  EXPECT_EQ(table.Report(0).generation, 2u);
}

TEST(SlotTable, CountsAShardOnceWhateverTheLease) {
  SlotTable table = Make();
  ASSERT_TRUE(table.Count(HeaderOf({0, 0}, 0, 0, 1, 1)).ok());
  EXPECT_TRUE(absl::IsAlreadyExists(table.Count(HeaderOf({0, 0}, 0, 0, 1, 1)).status()));
  EXPECT_TRUE(absl::IsAlreadyExists(table.Count(HeaderOf({0, 0}, 0, 0, 1, 9)).status()));
  EXPECT_EQ(table.Report(0).counted.size(), 1u);
}

TEST(SlotTable, RefusesADeadGeneration) {
  SlotTable table = Make();
  FillTable(table, {0, 0}, 0, 1);
  table.Take({0, 0});
  ASSERT_TRUE(table.Release(0, 1));
  EXPECT_TRUE(absl::IsFailedPrecondition(table.Count(HeaderOf({0, 1}, 0, 0, 1, 7)).status()));
  EXPECT_TRUE(table.Count(HeaderOf({0, 1}, 0, 0, 2, 8)).ok());
  EXPECT_FALSE(table.Release(0, 1)) << "a released generation must not come back twice";
}

TEST(SlotTable, RefusesWhatDoesNotFitTheStream) {
  SlotTable table = Make();
  const ShardHeader good = HeaderOf({0, 0}, 0, 0, 1, 1);
  const auto refused = [&](auto change) {
    ShardHeader bad = good;
    change(bad);
    return absl::IsInvalidArgument(table.Admit(bad));
  };
  EXPECT_TRUE(refused([](ShardHeader& h) { h.stream = 78; }));
  EXPECT_TRUE(refused([](ShardHeader& h) { h.shard.rank = 1; }));
  EXPECT_TRUE(refused([](ShardHeader& h) { h.shard.shard = 2; }));
  EXPECT_TRUE(refused([](ShardHeader& h) { h.grant.count += 1; }));
  EXPECT_TRUE(refused([](ShardHeader& h) { h.grant.count = ~0u; }));
  EXPECT_TRUE(refused([](ShardHeader& h) { h.grant.count = 0; }));
  EXPECT_TRUE(refused([](ShardHeader& h) { h.grant.place = 1; }));
  EXPECT_TRUE(refused([](ShardHeader& h) { h.grant.place = ~0u - 1; }));
  EXPECT_TRUE(refused([](ShardHeader& h) { h.grant.slot = 4; }));
  EXPECT_TRUE(refused([](ShardHeader& h) { h.shard.batch = 3; }));
  EXPECT_TRUE(refused([](ShardHeader& h) { h.shard.epoch = ~0u; }));
  EXPECT_TRUE(table.Admit(good).ok());
  EXPECT_TRUE(absl::IsFailedPrecondition(table.Admit(HeaderOf({0, 0}, 0, 3, 1, 1))))
      << "a spare is not granted";
}

TEST(SlotTable, HoldsABatchInOneSlotOnly) {
  SlotTable table = Make();
  ASSERT_TRUE(table.Count(HeaderOf({0, 0}, 0, 0, 1, 1)).ok());
  EXPECT_TRUE(absl::IsFailedPrecondition(table.Count(HeaderOf({0, 0}, 1, 1, 1, 2)).status()));
  EXPECT_TRUE(absl::IsFailedPrecondition(table.Count(HeaderOf({0, 1}, 0, 0, 1, 3)).status()));
}

TEST(SlotTable, RefusesBatchesThatWereTaken) {
  SlotTable table = Make();
  FillTable(table, {0, 0}, 0, 1);
  table.Take({0, 0});
  EXPECT_TRUE(absl::IsFailedPrecondition(table.Admit(HeaderOf({0, 0}, 0, 1, 1, 50))));
}

TEST(SlotTable, RefusesAFencedLeaseAndOlderOnesButNotTheNext) {
  SlotTable table = Make();
  EXPECT_TRUE(table.Fence(ShardId{0, 0, 0, 0}, LeaseNumber{1, 5}));
  EXPECT_TRUE(absl::IsFailedPrecondition(table.Admit(HeaderOf({0, 0}, 0, 0, 1, 5))));
  EXPECT_TRUE(absl::IsFailedPrecondition(table.Admit(HeaderOf({0, 0}, 0, 0, 1, 4))));
  EXPECT_TRUE(table.Admit(HeaderOf({0, 0}, 0, 0, 1, 6)).ok());
  EXPECT_TRUE(table.Admit(HeaderOf({0, 0}, 1, 0, 1, 4)).ok()) << "another shard is not fenced";
}

TEST(SlotTable, SaysWhenAFencedShardHadCounted) {
  SlotTable table = Make();
  ASSERT_TRUE(table.Count(HeaderOf({0, 0}, 0, 0, 1, 5)).ok());
  EXPECT_FALSE(table.Fence(ShardId{0, 0, 0, 0}, LeaseNumber{1, 5}));
}

TEST(SlotTable, MovesCountedShardsAndRestsTheOldSlotUntilProof) {
  SlotTable table = Make();
  ASSERT_TRUE(table.Count(HeaderOf({0, 0}, 0, 1, 1, 1)).ok());
  const ShardHeader lost = HeaderOf({0, 0}, 1, 1, 1, 2);
  ASSERT_TRUE(table.Fence(lost.shard, lost.lease));
  const auto evacuation = table.Evacuate(lost.shard, lost.grant);
  ASSERT_TRUE(evacuation.ok()) << evacuation.status();
  EXPECT_EQ(evacuation->resting_slot, 1u);
  ASSERT_EQ(evacuation->moves.size(), 1u);
  EXPECT_EQ(evacuation->moves[0].from_slot, 1u);
  EXPECT_EQ(evacuation->moves[0].to_slot, 3u);
  EXPECT_EQ(table.SlotOf({0, 0}), 3u);
  EXPECT_EQ(table.Report(1).phase, SlotPhase::kResting);
  EXPECT_TRUE(absl::IsFailedPrecondition(table.Count(lost).status()));

  ASSERT_TRUE(table.Count(HeaderOf({0, 0}, 1, 3, 1, 3)).ok());
  table.Take({0, 0});
  EXPECT_EQ(table.Report(1).phase, SlotPhase::kResting) << "no proof, no return";
  table.ProveGone(1);
  EXPECT_EQ(table.Report(1).phase, SlotPhase::kSpare);
  EXPECT_EQ(table.Report(1).generation, 2u);
  EXPECT_TRUE(absl::IsFailedPrecondition(table.Admit(HeaderOf({0, 1}, 0, 1, 1, 9))));
}

TEST(SlotTable, AMovedBatchStillTakesLiveShardsFromTheOldSlot) {
  SlotTable table = Make();
  const ShardHeader lost = HeaderOf({0, 0}, 1, 1, 1, 2);
  ASSERT_TRUE(table.Fence(lost.shard, lost.lease));
  ASSERT_TRUE(table.Evacuate(lost.shard, lost.grant).ok());
  const auto counted = table.Count(HeaderOf({0, 0}, 0, 1, 1, 1));
  ASSERT_TRUE(counted.ok()) << counted.status();
  ASSERT_TRUE(counted->move.has_value());
  EXPECT_EQ(counted->move->from_slot, 1u);
  EXPECT_EQ(counted->move->to_slot, 3u);
  table.ProveGone(1);
  EXPECT_EQ(table.Report(1).phase, SlotPhase::kResting) << "its batch is not complete";
  ASSERT_TRUE(table.Count(HeaderOf({0, 0}, 1, 3, 1, 3)).ok());
  EXPECT_EQ(table.Report(1).phase, SlotPhase::kSpare);
}

TEST(SlotTable, ABatchThatBecameWholeBeforeItMovesIsTakenFromTheSpare) {
  SlotTable table = Make();
  const ShardHeader lost = HeaderOf({0, 0}, 1, 1, 1, 2);
  ASSERT_TRUE(table.Fence(lost.shard, lost.lease));
  FillTable(table, {0, 0}, 1, 1);  // under later leases, while proof for the lost one is waited for
  const auto evacuation = table.Evacuate(lost.shard, lost.grant);
  ASSERT_TRUE(evacuation.ok()) << evacuation.status();
  EXPECT_EQ(evacuation->moves.size(), 2u);
  EXPECT_EQ(table.Report(1).phase, SlotPhase::kResting);
  EXPECT_EQ(table.FullSlot({0, 0}), 3u);
  table.Take({0, 0});
  EXPECT_EQ(table.Report(3).phase, SlotPhase::kInUse);
}

TEST(SlotTable, RunsOutOfSpares) {
  SlotTable table = Make();
  const ShardHeader first = HeaderOf({0, 0}, 0, 0, 1, 1);
  const ShardHeader second = HeaderOf({0, 1}, 0, 1, 1, 2);
  ASSERT_TRUE(table.Evacuate(first.shard, first.grant).ok());
  EXPECT_TRUE(absl::IsResourceExhausted(table.Evacuate(second.shard, second.grant).status()));
  EXPECT_EQ(table.Report(1).phase, SlotPhase::kFree) << "a failed move changes nothing";
}

TEST(SlotTable, ASecondFenceOfARestingSlotNeedsNoSecondSpare) {
  SlotTable table = Make();
  const ShardHeader a = HeaderOf({0, 0}, 0, 0, 1, 1);
  const ShardHeader b = HeaderOf({0, 0}, 1, 0, 1, 2);
  ASSERT_TRUE(table.Evacuate(a.shard, a.grant).ok());
  const auto again = table.Evacuate(b.shard, b.grant);
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_TRUE(again->moves.empty());
  FillTable(table, {0, 0}, 3, 1);
  table.ProveGone(0);
  EXPECT_EQ(table.Report(0).phase, SlotPhase::kResting) << "one of the two still writes";
  table.ProveGone(0);
  EXPECT_EQ(table.Report(0).phase, SlotPhase::kSpare);
}

TEST(SlotTable, ARunningTransferKeepsARestingSlotAndItsRange) {
  SlotTable table = Make();
  const ShardHeader stuck = HeaderOf({0, 0}, 0, 0, 1, 1);
  ASSERT_TRUE(table.BeginReceive(stuck).ok());
  EXPECT_TRUE(absl::IsUnavailable(table.BeginReceive(HeaderOf({0, 0}, 0, 0, 1, 2))));
  EXPECT_TRUE(table.Receiving(stuck.shard, LeaseNumber{1, 1}));
  EXPECT_TRUE(table.Receiving(stuck.shard, LeaseNumber{2, 0})) << "a newer fence voids it too";
  EXPECT_FALSE(table.Receiving(stuck.shard, LeaseNumber{1, 0}));
  ShardId other = stuck.shard;
  ++other.shard;
  EXPECT_FALSE(table.Receiving(other, LeaseNumber{2, 0}));
  ASSERT_TRUE(table.Fence(stuck.shard, stuck.lease));
  ASSERT_TRUE(table.Evacuate(stuck.shard, stuck.grant).ok());
  table.ProveGone(0);
  FillTable(table, {0, 0}, 3, 1);
  table.Take({0, 0});
  EXPECT_EQ(table.Report(0).phase, SlotPhase::kResting);
  EXPECT_TRUE(table.EndReceive(stuck, true));
  EXPECT_EQ(table.Report(0).phase, SlotPhase::kSpare);
  EXPECT_FALSE(table.Receiving(stuck.shard, LeaseNumber{2, 0}));
}

TEST(SlotTable, ShortAndEmptyBatchesFollowTheGeometry) {
  SlotTableOptions options = SmallOptions();
  options.geometry.world_size = 4;
  options.geometry.patches_per_epoch = 9;  // the last batch holds one patch: rank 3's
  options.rank = 0;
  options.first = Position{0, 2};
  SlotTable table = Make(options);
  EXPECT_TRUE(table.IsEmpty({0, 2}));
  table.Take({0, 2});
  EXPECT_EQ(table.next(), (Position{1, 0}));
}

TEST(SlotTable, RefusesImpossibleStreams) {
  const auto refused = [](auto change) {
    SlotTableOptions options = SmallOptions();
    change(options);
    return absl::IsInvalidArgument(SlotTable::Create(options).status());
  };
  EXPECT_TRUE(refused([](auto& o) { o.geometry.global_batch = 0; }));
  EXPECT_TRUE(refused([](auto& o) { o.geometry.shard_patches = 0; }));
  EXPECT_TRUE(refused([](auto& o) { o.geometry.patches_per_epoch = 0; }));
  EXPECT_TRUE(refused([](auto& o) { o.geometry.world_size = 0; }));
  EXPECT_TRUE(refused([](auto& o) { o.rank = 1; }));
  EXPECT_TRUE(refused([](auto& o) { o.slots = 0; }));
  EXPECT_TRUE(refused([](auto& o) { o.slots = kMaxRingSlots; }));
  EXPECT_TRUE(refused([](auto& o) { o.first.batch = 3; }));
}

TEST(SlotTable, SaysWhatDoesNotFit) {
  SlotTable table = Make();
  const auto refusal = [&](const ShardHeader& header) {
    return std::string(MessageOf(table.Admit(header)));
  };
  EXPECT_NE(refusal(HeaderOf({0, 0}, 2, 0, 1, 1)).find("no such shard"), std::string::npos);
  // Four slots from batch 0 of epoch 0 on: batch 0 of epoch 1 is within, batch 1 is not.
  EXPECT_EQ(refusal(HeaderOf({1, 0}, 0, 0, 1, 1)), "");
  EXPECT_NE(refusal(HeaderOf({1, 1}, 0, 0, 1, 1)).find("beyond the ring"), std::string::npos);
}

TEST(SlotTable, AnOlderFenceTakesNothingBackFromANewer) {
  SlotTable table = Make();
  const ShardId shard{0, 0, 0, 0};
  ASSERT_TRUE(table.Fence(shard, LeaseNumber{1, 5}));
  ASSERT_TRUE(table.Fence(shard, LeaseNumber{1, 3}));
  EXPECT_TRUE(absl::IsFailedPrecondition(table.Admit(HeaderOf({0, 0}, 0, 0, 1, 4))));
  EXPECT_TRUE(absl::IsFailedPrecondition(table.Admit(HeaderOf({0, 0}, 0, 0, 1, 5))));
}

TEST(SlotTable, OnlyTheGenerationInUseIsReleased) {
  SlotTable table = Make();
  FillTable(table, {0, 0}, 0, 1);
  table.Take({0, 0});
  for (const std::uint64_t generation : {0, 2, 100}) EXPECT_FALSE(table.Release(0, generation));
  EXPECT_FALSE(table.Release(table.SlotCount(), 1)) << "just past the last";
  EXPECT_EQ(table.Report(0).phase, SlotPhase::kInUse);
  EXPECT_TRUE(table.Release(0, 1));
}

TEST(SlotTable, ADeadGrantEvacuatesNothing) {
  SlotTable table = Make();
  FillTable(table, {0, 0}, 0, 1);
  table.Take({0, 0});
  ASSERT_TRUE(table.Release(0, 1));
  const ShardHeader dead = HeaderOf({0, 1}, 0, 0, 1, 5);
  ASSERT_TRUE(table.Fence(dead.shard, dead.lease));
  const auto evacuation = table.Evacuate(dead.shard, dead.grant);
  ASSERT_TRUE(evacuation.ok()) << evacuation.status();
  EXPECT_FALSE(evacuation->resting_slot.has_value());
  EXPECT_EQ(table.SparesLeft(), 1u);
}

TEST(SlotTable, AProofForASlotThatDoesNotRestCountsForNothing) {
  SlotTable table = Make();
  table.ProveGone(0);
  const ShardHeader lost = HeaderOf({0, 0}, 1, 0, 1, 2);
  ASSERT_TRUE(table.Fence(lost.shard, lost.lease));
  ASSERT_TRUE(table.Evacuate(lost.shard, lost.grant).ok());
  FillTable(table, {0, 0}, 3, 1);
  table.Take({0, 0});
  EXPECT_EQ(table.Report(0).phase, SlotPhase::kResting);
  table.ProveGone(0);
  EXPECT_EQ(table.Report(0).phase, SlotPhase::kSpare);
}

TEST(SlotTable, WhatFailedBeforeItsOthersBeganVoidsThemToo) {
  SlotTable table = Make();
  ShardHeader first = HeaderOf({0, 0}, 0, 0, 1, 1), second = first;
  first.array = 0;
  second.array = 1;
  ASSERT_TRUE(table.BeginReceive(first).ok());
  EXPECT_FALSE(table.EndReceive(first, false));
  EXPECT_TRUE(absl::IsFailedPrecondition(table.BeginReceive(second)));
  EXPECT_FALSE(table.Receiving(first.shard, first.lease));
}

/// A random walk over everything a scheduler, workers and a trainer may do, right and wrong.
ShardHeader ArrayOf(ShardHeader header, std::uint8_t array) {
  header.array = array;
  return header;
}

TEST(SlotTable, AShardIsWholeOnceEveryArrayOfOneLeaseLanded) {
  SlotTable table = Make();
  const ShardHeader shard = HeaderOf({0, 0}, 0, 0, 1, 1);
  ASSERT_TRUE(table.BeginReceive(ArrayOf(shard, 1)).ok()) << "whichever comes first";
  ASSERT_TRUE(table.BeginReceive(ArrayOf(shard, 0)).ok());
  EXPECT_FALSE(table.EndReceive(ArrayOf(shard, 0), true));
  EXPECT_TRUE(absl::IsFailedPrecondition(table.BeginReceive(ArrayOf(shard, 0))))
      << "it came before";
  EXPECT_TRUE(absl::IsUnavailable(table.BeginReceive(ArrayOf(HeaderOf({0, 0}, 0, 0, 1, 2), 0))))
      << "the other array is still being received";
  EXPECT_TRUE(table.Receiving(shard.shard, shard.lease));
  EXPECT_TRUE(table.EndReceive(ArrayOf(shard, 1), true));
  EXPECT_TRUE(table.Count(shard).ok());
}

TEST(SlotTable, OneFailedArrayVoidsTheOthersOfItsLeaseAndNoMore) {
  SlotTable table = Make();
  const ShardHeader first = HeaderOf({0, 0}, 0, 0, 1, 1), second = HeaderOf({0, 0}, 0, 0, 1, 2);
  ASSERT_TRUE(table.BeginReceive(ArrayOf(first, 0)).ok());
  ASSERT_TRUE(table.BeginReceive(ArrayOf(first, 1)).ok());
  EXPECT_FALSE(table.EndReceive(ArrayOf(first, 0), false));
  EXPECT_TRUE(table.Receiving(first.shard, first.lease)) << "the range is not free yet";
  EXPECT_FALSE(table.EndReceive(ArrayOf(first, 1), true)) << "void";
  EXPECT_FALSE(table.Receiving(first.shard, first.lease));
  EXPECT_TRUE(absl::IsFailedPrecondition(table.BeginReceive(ArrayOf(first, 0))));
  for (const std::uint8_t array : {0, 1}) {
    ASSERT_TRUE(table.BeginReceive(ArrayOf(second, array)).ok());
    EXPECT_EQ(table.EndReceive(ArrayOf(second, array), true), array == 1);
  }
}

TEST(SlotTable, ArraysOfTwoLeasesNeverMakeOneShard) {
  SlotTable table = Make();
  const ShardHeader first = HeaderOf({0, 0}, 0, 0, 1, 1), second = HeaderOf({0, 0}, 0, 0, 1, 2);
  ASSERT_TRUE(table.BeginReceive(ArrayOf(first, 0)).ok());
  EXPECT_FALSE(table.EndReceive(ArrayOf(first, 0), true)) << "left half-way";
  ASSERT_TRUE(table.Fence(first.shard, first.lease));
  EXPECT_FALSE(table.Receiving(first.shard, first.lease)) << "the range is free";
  EXPECT_TRUE(absl::IsFailedPrecondition(table.BeginReceive(ArrayOf(first, 1))));
  ASSERT_TRUE(table.BeginReceive(ArrayOf(second, 1)).ok());
  EXPECT_FALSE(table.EndReceive(ArrayOf(second, 1), true));
}

class RandomWalk {
 public:
  explicit RandomWalk(std::uint32_t seed)
      : random_(seed), options_(WithSpares(1 + Pick(3))), table_(Make(options_)) {}

  void Step() {
    Position at = table_.next();
    for (std::uint32_t ahead = Pick(4); ahead > 0; --ahead) at = NextPosition(SmallGeometry(), at);
    const std::uint32_t shard = Pick(2);
    const std::uint32_t slot = Pick(table_.SlotCount());
    const std::uint64_t generation = table_.Report(slot).generation - (Pick(8) == 0 ? 1 : 0);
    const ShardHeader header = HeaderOf(at, shard, slot, generation, lease_++);
    switch (Pick(7)) {
      case 0:
      case 1:
        return CountOnce(header);
      case 2:
        if (table_.BeginReceive(header).ok()) transfers_.push_back(header);
        return;
      case 3:
        return EndATransfer();
      case 4:
        return FenceAndMove(header);
      case 5:
        return Prove(slot);
      default:
        return TakeAndRelease();
    }
  }

  /// Slots are conserved, generations rise, and slots that a fenced process may still write to
  /// rest.
  void ExpectInvariants() {
    std::uint32_t granted = 0;
    for (const SlotReport& r : table_.ReportAll()) {
      EXPECT_GE(r.generation, generations_[r.slot]);
      generations_[r.slot] = r.generation;
      if (r.phase != SlotPhase::kResting && r.phase != SlotPhase::kSpare) ++granted;
      const bool must_rest = zombies_[r.slot] > 0;
      EXPECT_TRUE(!must_rest || r.phase == SlotPhase::kResting) << "slot " << r.slot;
    }
    EXPECT_EQ(granted, options_.slots);
  }

 private:
  std::uint32_t Pick(std::uint32_t n) { return static_cast<std::uint32_t>(random_() % n); }
  static SlotTableOptions WithSpares(std::uint32_t spares) {
    SlotTableOptions options = SmallOptions();
    options.spares = spares;
    return options;
  }
  void CountOnce(const ShardHeader& header) {
    if (!table_.Count(header).ok()) return;
    EXPECT_TRUE(counted_.insert(header.shard).second) << header.shard.ToString();
  }
  void EndATransfer() {
    if (transfers_.empty()) return;
    const ShardHeader ended = transfers_.back();
    transfers_.pop_back();
    if (table_.EndReceive(ended, Pick(4) != 0)) CountOnce(ended);
  }
  void FenceAndMove(const ShardHeader& header) {
    if (!table_.Fence(header.shard, header.lease)) return;
    const auto moved = table_.Evacuate(header.shard, header.grant);
    if (moved.ok() && moved->resting_slot.has_value()) ++zombies_[*moved->resting_slot];
  }
  void Prove(std::uint32_t slot) {
    if (zombies_[slot] == 0) return;
    --zombies_[slot];
    table_.ProveGone(slot);
  }
  void TakeAndRelease() {
    if (table_.FullSlot(table_.next()).has_value()) {
      EXPECT_EQ(table_.next(), expected_);
      table_.Take(table_.next());
      expected_ = NextPosition(SmallGeometry(), expected_);
    }
    for (std::uint32_t s = 0; s < table_.SlotCount(); ++s) {
      if (Pick(2) == 0) table_.Release(s, table_.Report(s).generation);
    }
  }

  std::mt19937 random_;
  SlotTableOptions options_;
  SlotTable table_;
  std::set<ShardId> counted_;
  std::vector<ShardHeader> transfers_;
  std::map<std::uint32_t, std::uint32_t> zombies_;
  std::map<std::uint32_t, std::uint64_t> generations_;
  std::uint64_t lease_ = 1;
  Position expected_;
};

TEST(SlotTable, KeepsItsInvariantsOnRandomWalks) {
  for (std::uint32_t seed = 1; seed <= 300; ++seed) {
    SCOPED_TRACE(::testing::Message() << "seed " << seed);
    RandomWalk walk(seed);
    for (int step = 0; step < 400 && !::testing::Test::HasFailure(); ++step) {
      walk.Step();
      walk.ExpectInvariants();
    }
  }
}

}  // namespace
}  // namespace patchbay::data
