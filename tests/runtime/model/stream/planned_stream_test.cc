// The text of a planned stream: all readers get what the planner wrote.
#include "runtime/model/stream/planned_stream.h"

#include <gtest/gtest.h>

#include "runtime/model/stream/limits.h"
#include "runtime/model/stream/position.h"

namespace patchbay {
namespace {

PlannedStream Planned() {
  PlannedStream stream;
  stream.plan = "the plan, with \"quotes\"";
  stream.manifest = DumpJson({{"root", "/data/"}, {"images", {"a", "b\xff"}}});
  stream.geometry.patches_per_epoch = 101;
  stream.geometry.global_batch = 8;
  stream.geometry.tail = Tail::kPad;
  stream.geometry.world_size = 2;
  stream.geometry.shard_patches = 3;
  stream.numerics = Numerics::kStrict;
  stream.skipped = {{"count", 1}, {"images", {{"/data/c", "it cannot be read"}}}};
  stream.images = ImageRuns::OfCounts({50, 50, 1});
  return stream;
}

TEST(PlannedStream, ReadsWhatWasWritten) {
  const PlannedStream stream = Planned();
  const auto read = DecodePlannedStream(EncodePlannedStream(stream));
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(read->plan, stream.plan);
  EXPECT_EQ(read->manifest, stream.manifest);
  EXPECT_EQ(read->geometry, stream.geometry);
  EXPECT_EQ(read->skipped, stream.skipped);
  EXPECT_EQ(read->numerics, stream.numerics);
  EXPECT_EQ(read->images.runs(), stream.images.runs());
  EXPECT_EQ(EncodePlannedStream(*read), EncodePlannedStream(stream));
}

TEST(PlannedStream, KnowsEveryTailAndNumerics) {
  for (const Tail tail : kAllTails) {
    for (const Numerics numerics : kAllNumerics) {
      PlannedStream stream = Planned();
      stream.geometry.tail = tail;
      stream.numerics = numerics;
      const auto read = DecodePlannedStream(EncodePlannedStream(stream));
      ASSERT_TRUE(read.ok()) << read.status();
      EXPECT_EQ(read->geometry.tail, tail);
      EXPECT_EQ(read->numerics, numerics);
    }
  }
}

TEST(PlannedStream, RefusesWhatIsNoText) {
  for (const char* text : {"", "[]", "{}", "null", R"({"plan":"p"})", R"({"geometry":[]})"}) {
    EXPECT_TRUE(absl::IsInvalidArgument(DecodePlannedStream(text).status())) << text;
  }
}

TEST(PlannedStream, RefusesEveryPartThatIsMissingOrOfAnotherType) {
  const Json good = *ParseJson(EncodePlannedStream(Planned()), "test");
  for (const char* part : {"plan", "manifest", "geometry"}) {
    Json broken = good;
    broken[part] = 5;
    EXPECT_TRUE(absl::IsInvalidArgument(DecodePlannedStream(DumpJson(broken)).status())) << part;
    broken.erase(part);
    EXPECT_TRUE(absl::IsInvalidArgument(DecodePlannedStream(DumpJson(broken)).status())) << part;
  }
  for (const auto& [key, value] : good["geometry"].items()) {
    for (const Json& bad : {Json(0), Json(-1), Json("x"), Json(std::uint64_t{1} << 63)}) {
      Json broken = good;
      broken["geometry"][key] = bad;
      const Status status = DecodePlannedStream(DumpJson(broken)).status();
      EXPECT_TRUE(absl::IsInvalidArgument(status)) << key << " = " << bad;
    }
    Json without = good;
    without["geometry"].erase(key);
    EXPECT_EQ(DecodePlannedStream(DumpJson(without)).ok(), key == "image_runs") << key;
  }
}

TEST(PlannedStream, RefusesAGeometryThatCannotBeCut) {
  const auto refused = [](auto change) {
    PlannedStream stream = Planned();
    stream.images = {};
    change(stream.geometry);
    return absl::IsInvalidArgument(DecodePlannedStream(EncodePlannedStream(stream)).status());
  };
  EXPECT_TRUE(refused([](StreamGeometry& g) { g.world_size = 9; })) << "ranks without a patch";
  EXPECT_TRUE(refused([](StreamGeometry& g) {
    g.tail = Tail::kDrop;
    g.global_batch = 102;
  })) << "no batch";
  EXPECT_TRUE(refused([](StreamGeometry& g) {
    g.patches_per_epoch = g.global_batch = 4 * (kMaxShardsPerSlot + 1);
    g.shard_patches = 1;
  })) << "too many shards in a slot";
  EXPECT_FALSE(refused([](StreamGeometry&) {}));
}

TEST(Position, WalksThroughEpochsAndPassesBatchesInWhichARankHasNothing) {
  StreamGeometry g = Planned().geometry;
  g.tail = Tail::kKeep;
  g.patches_per_epoch = 17;  // batches of 8, 8 and 1
  EXPECT_EQ(NextPosition(g, {0, 1}), (Position{0, 2}));
  EXPECT_EQ(NextPosition(g, {0, 2}), (Position{1, 0}));
  EXPECT_EQ(SkipEmpty(g, 0, {0, 2}), (Position{1, 0})) << "rank 1 has the only patch";
  EXPECT_EQ(SkipEmpty(g, 1, {0, 2}), (Position{0, 2}));
  EXPECT_EQ(SkipEmpty(g, 1, {0, 3}), (Position{1, 0}));
}

}  // namespace
}  // namespace patchbay
