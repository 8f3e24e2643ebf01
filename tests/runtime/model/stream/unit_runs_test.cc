// Units partition an epoch, and no batch crosses one, whatever the numbers.
#include "runtime/model/stream/unit_runs.h"

#include <algorithm>
#include <random>
#include <vector>

#include <gtest/gtest.h>

#include "runtime/model/stream/limits.h"
#include "runtime/model/stream/planned_stream.h"
#include "runtime/model/stream/position.h"
#include "runtime/model/stream/unit_course.h"

namespace patchbay {
namespace {

StreamGeometry Cut(const std::vector<std::uint64_t>& counts, std::uint32_t batch,
                   std::uint32_t shard) {
  StreamGeometry g;
  g.global_batch = batch;
  g.shard_patches = shard;
  const auto units = UnitRuns::OfCounts(counts, batch);
  EXPECT_TRUE(units.ok()) << units.status();
  g.units = *units;
  g.patches_per_epoch = g.units.patches();
  return g;
}

TEST(UnitRuns, AUnitIsCutIntoBatchesOfItsOwn) {
  const StreamGeometry g = Cut({5, 1, 0, 8, 3}, 4, 4);
  ASSERT_TRUE(CheckGeometry(g).ok());
  EXPECT_EQ(g.units.units(), 4u) << "an image without patches is no unit";
  EXPECT_EQ(BatchesPerEpoch(g), 2u + 1 + 2 + 1);
  const std::vector<std::uint32_t> expected = {4, 1, 1, 4, 4, 3};
  for (std::uint64_t batch = 0; batch < 6; ++batch) {
    EXPECT_EQ(PatchesInBatch(g, batch), expected[batch]) << batch;
  }
  EXPECT_EQ(PatchesInBatch(g, 6), 0u);
  EXPECT_EQ(RankRun(g, 3, 77).first_ordinal, 6u) << "a batch is whole at any rank";
  EXPECT_EQ(g.units.OfBatch(4).number, 2u);
  EXPECT_EQ(g.units.At(3).first_ordinal, 14u);
}

TEST(UnitRuns, ShardsCoverEveryOrdinalOnceAndCrossNoUnit) {
  const unsigned seed = 20261126;
  std::mt19937 random(seed);
  for (int round = 0; round < 200; ++round) {
    SCOPED_TRACE(testing::Message() << "seed " << seed << " round " << round);
    std::vector<std::uint64_t> counts(1 + random() % 40);
    for (std::uint64_t& count : counts) count = random() % 3 == 0 ? 7 : random() % 90;
    counts.push_back(1);
    const StreamGeometry g = Cut(counts, 1 + random() % 40, 1 + random() % 9);
    ASSERT_TRUE(CheckGeometry(g).ok());
    std::erase(counts, std::uint64_t{0});
    std::uint64_t next = 0;
    std::uint32_t most = 0;
    for (std::uint64_t batch = 0; batch < BatchesPerEpoch(g); ++batch) {
      const StreamUnit unit = g.units.OfBatch(batch);
      EXPECT_EQ(unit.patches, counts[unit.number]);
      EXPECT_EQ(g.units.At(unit.number).first_batch, unit.first_batch);
      EXPECT_GE(next, unit.first_ordinal);
      std::uint32_t place = 0;
      for (std::uint32_t shard = 0; shard < ShardsInRank(g, batch, 12345); ++shard) {
        const PatchRun run = ShardRun(g, batch, 12345, shard);
        EXPECT_EQ(run.first_ordinal, next);
        EXPECT_EQ(run.place, place);
        EXPECT_GT(run.count, 0u);
        next += run.count;
        place += run.count;
      }
      EXPECT_LE(next, unit.first_ordinal + unit.patches);
      EXPECT_EQ(next == unit.first_ordinal + unit.patches, batch + 1 == unit.end_batch());
      most = std::max(most, place);
    }
    EXPECT_EQ(next, g.patches_per_epoch);
    EXPECT_EQ(most, Capacity(g)) << "not one patch more than needed";
  }
}

TEST(UnitRuns, AHundredThousandUnitsAreFoundByNumberAndByBatch) {
  std::vector<std::uint64_t> counts(100'000);
  for (std::size_t i = 0; i < counts.size(); ++i) counts[i] = 1 + i / 3 % 1000;
  const StreamGeometry g = Cut(counts, 64, 8);
  ASSERT_TRUE(CheckGeometry(g).ok());
  ASSERT_EQ(g.units.units(), counts.size());
  std::uint64_t ordinal = 0, batch = 0;
  for (std::uint64_t i = 0; i < counts.size(); ++i) {
    const StreamUnit unit = g.units.At(i);
    ASSERT_EQ(unit.first_ordinal, ordinal);
    ASSERT_EQ(unit.first_batch, batch);
    ASSERT_EQ(g.units.OfBatch(unit.end_batch() - 1).number, i);
    ordinal += counts[i];
    batch += (counts[i] + 63) / 64;
  }
  EXPECT_EQ(BatchesPerEpoch(g), batch);
}

TEST(UnitRuns, CountsThatCannotBeCutAreRefused) {
  std::vector<std::uint64_t> counts(kMaxUnitRuns + 1);
  for (std::size_t i = 0; i < counts.size(); ++i) counts[i] = 1 + i % 2;
  EXPECT_FALSE(UnitRuns::OfCounts(counts, 4).ok());
  const std::vector<UnitRuns::Run> huge = {{kMaxPatchesPerEpoch, 2}}, empty = {{0, 2}};
  EXPECT_FALSE(UnitRuns::Of(huge, 4).ok());
  EXPECT_FALSE(UnitRuns::Of(empty, 4).ok());
  StreamGeometry g = Cut({5, 6}, 4, 2);
  g.world_size = 2;
  EXPECT_FALSE(CheckGeometry(g).ok()) << "units have consumers, not ranks";
  g.world_size = 1;
  g.patches_per_epoch = 12;
  EXPECT_FALSE(CheckGeometry(g).ok());
}

TEST(UnitRuns, AreInThePlansText) {
  PlannedStream planned;
  planned.plan = "p";
  planned.geometry = Cut({5, 5, 9}, 4, 2);
  const auto read = DecodePlannedStream(EncodePlannedStream(planned));
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(read->geometry, planned.geometry);
  planned.geometry.units = {};
  EXPECT_EQ(EncodePlannedStream(planned).find("units"), std::string::npos)
      << "a plan without units has the text that it had";
}

TEST(UnitCourse, PositionsGoOnlyUpAndHopFromUnitToUnit) {
  const StreamGeometry g = Cut({8, 8, 8, 8}, 4, 4);  // batches 0-1, 2-3, 4-5, 6-7
  UnitCourse course;
  EXPECT_EQ(course.At(g, {}), std::nullopt);
  EXPECT_TRUE(course.Add(g, {0, 1}));
  EXPECT_TRUE(course.Add(g, {0, 3}));
  EXPECT_FALSE(course.Add(g, {0, 3})) << "it is known";
  EXPECT_FALSE(course.Add(g, {0, 2})) << "news of before";
  EXPECT_FALSE(course.Add(g, {1, 4})) << "there is no such unit";
  EXPECT_TRUE(course.Add(g, {1, 0}));
  EXPECT_EQ(course.At(g, {0, 0}), (Position{0, 2}));
  EXPECT_EQ(course.At(g, {0, 3}), (Position{0, 3}));
  EXPECT_EQ(course.At(g, {0, 4}), (Position{0, 6}));
  EXPECT_EQ(course.At(g, NextPosition(g, {0, 7})), (Position{1, 0}));
  EXPECT_EQ(course.At(g, {1, 2}), std::nullopt);
  EXPECT_TRUE(course.Has(g, {0, 7}));
  EXPECT_FALSE(course.Has(g, {0, 4}));
  course.Remove(3);
  EXPECT_EQ(course.At(g, {0, 4}), (Position{1, 0}));
  EXPECT_FALSE(course.Add(g, {0, 3})) << "what was removed does not come back";
}

}  // namespace
}  // namespace patchbay
