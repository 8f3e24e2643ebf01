#include "runtime/data/slot_table.h"

#include <map>
#include <random>
#include <set>

#include "gtest/gtest.h"
#include "tests/runtime/data/stream_fixture.h"

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
void Fill(SlotTable& table, Position at, std::uint32_t slot, std::uint64_t generation) {
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
  Fill(table, {0, 0}, 0, 1);
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
  EXPECT_TRUE(refused([](ShardHeader& h) { h.grant.size_bytes += 1; }));
  EXPECT_TRUE(refused([](ShardHeader& h) { h.grant.size_bytes = ~std::uint64_t{0}; }));
  EXPECT_TRUE(refused([](ShardHeader& h) { h.grant.offset_bytes = 1; }));
  EXPECT_TRUE(refused([](ShardHeader& h) { h.grant.offset_bytes = ~std::uint64_t{0} - 5; }));
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
  Fill(table, {0, 0}, 0, 1);
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
  Fill(table, {0, 0}, 3, 1);
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
  EXPECT_TRUE(table.Receiving(LeaseNumber{1, 1}));
  ASSERT_TRUE(table.Fence(stuck.shard, stuck.lease));
  ASSERT_TRUE(table.Evacuate(stuck.shard, stuck.grant).ok());
  table.ProveGone(0);
  Fill(table, {0, 0}, 3, 1);
  table.Take({0, 0});
  EXPECT_EQ(table.Report(0).phase, SlotPhase::kResting);
  table.EndReceive(stuck);
  EXPECT_EQ(table.Report(0).phase, SlotPhase::kSpare);
  EXPECT_FALSE(table.Receiving(LeaseNumber{1, 1}));
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
  EXPECT_TRUE(refused([](auto& o) { o.geometry.patch_bytes = 0; }));
  EXPECT_TRUE(refused([](auto& o) { o.geometry.patches_per_epoch = 0; }));
  EXPECT_TRUE(refused([](auto& o) { o.geometry.world_size = 0; }));
  EXPECT_TRUE(refused([](auto& o) { o.rank = 1; }));
  EXPECT_TRUE(refused([](auto& o) { o.slots = 0; }));
  EXPECT_TRUE(refused([](auto& o) { o.slots = kMaxSlots + 1; }));
  EXPECT_TRUE(refused([](auto& o) { o.first.batch = 3; }));
}

/// Random walks over everything a scheduler, workers and a trainer may do, right and wrong, against
/// the invariants: a shard counts once, generations rise, slots are conserved, batches come in
/// order.
TEST(SlotTable, KeepsItsInvariantsOnRandomWalks) {
  for (std::uint32_t seed = 1; seed <= 300; ++seed) {
    SCOPED_TRACE(::testing::Message() << "seed " << seed);
    std::mt19937 random(seed);
    const auto pick = [&random](std::uint32_t n) {
      return static_cast<std::uint32_t>(random() % n);
    };
    SlotTableOptions options = SmallOptions();
    options.spares = 1 + pick(3);
    SlotTable table = Make(options);
    std::set<ShardId> counted;
    std::vector<ShardHeader> transfers;
    std::map<std::uint32_t, std::uint32_t> zombies;
    std::map<std::uint32_t, std::uint64_t> generations;
    std::uint64_t lease = 1;
    Position expected;
    for (int step = 0; step < 400; ++step) {
      Position at = table.next();
      for (std::uint32_t ahead = pick(4); ahead > 0; --ahead)
        at = NextPosition(SmallGeometry(), at);
      const std::uint32_t shard = pick(2);
      const std::uint32_t slot = pick(table.SlotCount());
      const SlotReport report = table.Report(slot);
      const ShardHeader header =
          HeaderOf(at, shard, slot, report.generation - (pick(8) == 0 ? 1 : 0), lease++);
      switch (pick(7)) {
        case 0:
        case 1:
          if (table.Count(header).ok()) {
            EXPECT_TRUE(counted.insert(header.shard).second) << header.shard.ToString();
          }
          break;
        case 2:
          if (table.BeginReceive(header).ok()) transfers.push_back(header);
          break;
        case 3:
          if (!transfers.empty()) {
            const ShardHeader ended = transfers.back();
            transfers.pop_back();
            table.EndReceive(ended);
            if (table.Count(ended).ok()) {
              EXPECT_TRUE(counted.insert(ended.shard).second);
            }
          }
          break;
        case 4:
          if (table.Fence(header.shard, header.lease)) {
            const auto moved = table.Evacuate(header.shard, header.grant);
            if (moved.ok() && moved->resting_slot.has_value()) ++zombies[*moved->resting_slot];
          }
          break;
        case 5:
          if (zombies[slot] > 0) {
            --zombies[slot];
            table.ProveGone(slot);
          }
          break;
        case 6:
          if (table.FullSlot(table.next()).has_value()) {
            EXPECT_EQ(table.next(), expected);
            table.Take(table.next());
            expected = NextPosition(SmallGeometry(), expected);
          }
          for (std::uint32_t s = 0; s < table.SlotCount(); ++s) {
            if (pick(2) == 0) table.Release(s, table.Report(s).generation);
          }
          break;
      }
      std::uint32_t granted = 0;
      for (const SlotReport& r : table.ReportAll()) {
        EXPECT_GE(r.generation, generations[r.slot]);
        generations[r.slot] = r.generation;
        if (r.phase != SlotPhase::kResting && r.phase != SlotPhase::kSpare) ++granted;
        const bool must_rest = zombies[r.slot] > 0;
        EXPECT_TRUE(!must_rest || r.phase == SlotPhase::kResting) << "slot " << r.slot;
      }
      ASSERT_EQ(granted, options.slots);
      if (::testing::Test::HasFailure()) return;
    }
  }
}

}  // namespace
}  // namespace patchbay::data
