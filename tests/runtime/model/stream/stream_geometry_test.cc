// Batches, ranks and shards partition an epoch, whatever the numbers.
#include "runtime/model/stream/stream_geometry.h"

#include <random>
#include <vector>

#include <gtest/gtest.h>

namespace patchbay {
namespace {

StreamGeometry Make(std::uint64_t patches, std::uint32_t batch, Tail tail, std::uint32_t world,
                    std::uint32_t shard) {
  StreamGeometry g;
  g.patches_per_epoch = patches;
  g.global_batch = batch;
  g.tail = tail;
  g.world_size = world;
  g.shard_patches = shard;
  return g;
}

TEST(StreamGeometry, TailDecidesTheLastBatch) {
  EXPECT_EQ(BatchesPerEpoch(Make(100, 32, Tail::kKeep, 1, 4)), 4u);
  EXPECT_EQ(PatchesInBatch(Make(100, 32, Tail::kKeep, 1, 4), 3), 4u);
  EXPECT_EQ(BatchesPerEpoch(Make(100, 32, Tail::kDrop, 1, 4)), 3u);
  EXPECT_EQ(PatchesInBatch(Make(100, 32, Tail::kPad, 1, 4), 3), 32u);
  EXPECT_EQ(PatchesInBatch(Make(100, 32, Tail::kWrap, 1, 4), 3), 32u);
  EXPECT_EQ(PatchesInBatch(Make(100, 32, Tail::kKeep, 1, 4), 4), 0u);
}

TEST(StreamGeometry, ShardsCoverEveryOrdinalOnceAndEveryPlaceOnce) {
  const unsigned seed = 20261120;
  std::mt19937 random(seed);
  for (int round = 0; round < 300; ++round) {
    const StreamGeometry g =
        Make(1 + random() % 500, 1 + random() % 40, static_cast<Tail>(random() % 4),
             1 + random() % 5, 1 + random() % 9);
    SCOPED_TRACE(testing::Message() << "seed " << seed << " round " << round);
    std::uint64_t next = 0;
    std::uint32_t most = 0;
    for (std::uint64_t batch = 0; batch < BatchesPerEpoch(g); ++batch) {
      EXPECT_EQ(next, batch * g.global_batch);
      for (std::uint32_t rank = 0; rank < g.world_size; ++rank) {
        std::uint32_t place = 0;
        for (std::uint32_t shard = 0; shard < ShardsInRank(g, batch, rank); ++shard) {
          const PatchRun run = ShardRun(g, batch, rank, shard);
          EXPECT_EQ(run.first_ordinal, next);
          EXPECT_EQ(run.place, place);
          EXPECT_GT(run.count, 0u);
          next += run.count;
          place += run.count;
        }
        EXPECT_LE(place, Capacity(g));
        most = std::max(most, place);
      }
      EXPECT_EQ(next, batch * g.global_batch + PatchesInBatch(g, batch));
    }
    EXPECT_EQ(most, BatchesPerEpoch(g) == 0 ? 0 : Capacity(g)) << "not one patch more than needed";
  }
}

}  // namespace
}  // namespace patchbay
