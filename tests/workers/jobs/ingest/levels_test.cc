// PlanLevels: the pyramid levels that a store gets.
#include "workers/jobs/ingest/levels.h"

#include <gtest/gtest.h>

#include "runtime/core/strings.h"

namespace patchbay::workers {
namespace {

ImageLayout Layout(std::vector<std::pair<std::int64_t, std::int64_t>> sizes) {
  ImageLayout layout;
  for (const auto& [height, width] : sizes) {
    LevelLayout level;
    level.size.y = height;
    level.size.x = width;
    layout.levels.push_back(level);
  }
  layout.spacing = SpacingOfMpp(0.25, 0.25);
  return layout;
}

TEST(IngestLevels, SingleLevelSourceIsHalvedUntilOneChunkHoldsIt) {
  const auto levels = *PlanLevels(Layout({{2967, 2220}}), IngestSettings{});
  ASSERT_EQ(levels.size(), 4u);
  EXPECT_EQ(levels[1].size.y, 1484);
  EXPECT_EQ(levels[1].size.x, 1110);
  EXPECT_EQ(levels[3].size.y, 371);
  EXPECT_EQ(levels[3].size.x, 278);
  EXPECT_TRUE(levels[0].from_source);
  for (std::size_t i = 1; i < levels.size(); ++i) {
    EXPECT_FALSE(levels[i].from_source);
    EXPECT_EQ(levels[i].parent, static_cast<int>(i) - 1);
  }
}

TEST(IngestLevels, SourceLevelsKeepTheirIndicesAndBuiltOnesFollow) {
  const auto levels = *PlanLevels(Layout({{10249, 11952}, {2562, 2988}}), IngestSettings{});
  ASSERT_EQ(levels.size(), 5u);
  EXPECT_TRUE(levels[1].from_source);
  EXPECT_EQ(levels[1].source_level, 1);
  EXPECT_EQ(levels[1].size.y, 2562);
  EXPECT_EQ(levels[2].size.y, 1281);
  EXPECT_FALSE(levels[2].from_source);
  EXPECT_LE(levels.back().size.x, 512);
}

TEST(IngestLevels, ABuiltLevelHasExactlyTwiceThePixelSizeOfItsParent) {
  const auto levels = *PlanLevels(Layout({{2967, 2221}}), IngestSettings{});
  EXPECT_EQ(levels[1].size.x, 1111);
  EXPECT_EQ(levels[1].downsample_x, 2.0);
  EXPECT_EQ(levels[3].downsample_y, 8.0);
}

TEST(IngestLevels, MppBetweenSourceLevelsIsBuilt) {
  IngestSettings settings;
  settings.mpp = 0.5;
  const auto levels = *PlanLevels(Layout({{8000, 8000}, {2000, 2000}}), settings);
  EXPECT_FALSE(levels[0].stored);
  EXPECT_FALSE(levels[1].from_source);
  EXPECT_EQ(levels[1].size.y, 4000);
  EXPECT_TRUE(levels[2].from_source);
  settings.mpp = 1.0;  // the slide has it
  const auto own = *PlanLevels(Layout({{8000, 8000}, {2000, 2000}}), settings);
  EXPECT_TRUE(own[1].from_source);
  EXPECT_EQ(StoredIndex(own, 1), 0);
}

TEST(IngestLevels, AveragedLevelsBelongToTheFinestOneTheirPixelsComeFrom) {
  const auto one = *PlanLevels(Layout({{40'000, 40'000}}), IngestSettings{});
  std::vector<int> finest;
  for (int i = 0; i < 8; ++i) finest.push_back(FinestOfColumn(one, i, 3));
  EXPECT_EQ(finest, (std::vector<int>{0, 0, 0, 0, 4, 4, 4, 4}));
  EXPECT_EQ(FinestOfColumn(one, 2, 0), 2);
  EXPECT_EQ(FinestOfColumn(one, 2, 1), 2);
  EXPECT_EQ(FinestOfColumn(one, 3, 1), 2);
  const auto kept = *PlanLevels(Layout({{10249, 11952}, {2562, 2988}}), IngestSettings{});
  EXPECT_EQ(FinestOfColumn(kept, 1, 3), 1);
  EXPECT_EQ(FinestOfColumn(kept, 2, 3), 1);
  EXPECT_EQ(FinestOfColumn(kept, 3, 3), 1);
  IngestSettings settings;
  settings.mpp = 0.5;  // level 0 is not stored
  const auto coarse = *PlanLevels(Layout({{4000, 4000}}), settings);
  EXPECT_EQ(FinestOfColumn(coarse, 1, 3), 1);
  EXPECT_EQ(FinestOfColumn(coarse, 2, 3), 1);
}

TEST(IngestLevels, EverySourceLevelIsKeptEvenBelowOneChunk) {
  const auto levels = *PlanLevels(Layout({{400, 400}, {200, 200}, {100, 100}}), IngestSettings{});
  ASSERT_EQ(levels.size(), 3u);
  for (const OutputLevel& level : levels) EXPECT_TRUE(level.from_source);
}

TEST(IngestLevels, KeptTilesHaveTheSourceLevelsAlone) {
  IngestSettings settings;
  settings.codec = "keep";
  const ImageLayout layout = Layout({{40'000, 40'000}, {10'000, 10'000}});
  const auto levels = *PlanLevels(layout, settings);
  ASSERT_EQ(levels.size(), 2u);
  EXPECT_TRUE(levels[0].from_source && levels[1].from_source);
  settings.mpp = 1.0;
  const auto coarse = *PlanLevels(layout, settings);
  EXPECT_FALSE(coarse[0].stored);
  EXPECT_TRUE(coarse[1].stored);
  settings.mpp = 0.5;  // only an average has it
  EXPECT_TRUE(absl::IsInvalidArgument(PlanLevels(layout, settings).status()));
}

TEST(IngestLevels, MppStartsAtTheWorkingMagnification) {
  IngestSettings settings;
  settings.mpp = 0.5;
  const auto levels = *PlanLevels(Layout({{4000, 4000}}), settings);
  EXPECT_FALSE(levels[0].stored);
  EXPECT_TRUE(levels[1].stored);
  EXPECT_EQ(StoredIndex(levels, 1), 0);
  EXPECT_EQ(StoredIndex(levels, 2), 1);
}

TEST(IngestLevels, MppThatNoLevelHasIsRefusedWithWhatThereIs) {
  IngestSettings settings;
  settings.mpp = 0.37;
  const auto levels = PlanLevels(Layout({{4000, 4000}}), settings);
  EXPECT_EQ(levels.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_NE(MessageOf(levels.status()).find("0.25, 0.5, 1, 2"), std::string_view::npos);
}

TEST(IngestLevels, MppOfASlideWithoutMppIsRefused) {
  IngestSettings settings;
  settings.mpp = 0.5;
  ImageLayout layout = Layout({{4000, 4000}});
  layout.spacing.x.reset();
  EXPECT_FALSE(PlanLevels(layout, settings).ok());
}

TEST(IngestLevels, AssumedMppCountsWhereTheSlideStatesNone) {
  IngestSettings settings;
  settings.mpp = 0.5;
  settings.assume_mpp = 0.125;
  ImageLayout layout = Layout({{4000, 4000}});
  EXPECT_FALSE(AssumesMpp(layout, settings));
  EXPECT_EQ(SpacingOf(layout, settings).MeanMpp(), 0.25);
  EXPECT_TRUE((*PlanLevels(layout, settings))[1].stored);

  layout.spacing = Spacing();
  EXPECT_TRUE(AssumesMpp(layout, settings));
  EXPECT_EQ(SpacingOf(layout, settings).MeanMpp(), 0.125);
  const auto levels = *PlanLevels(layout, settings);
  EXPECT_FALSE(levels[1].stored);
  EXPECT_TRUE(levels[2].stored);
}

TEST(IngestSettingsText, UnknownKeysAndBadRangesAreRefused) {
  EXPECT_TRUE(ReadPayload<IngestSettings>(Json::object(), "ingest settings").ok());
  EXPECT_FALSE(ReadPayload<IngestSettings>(Json{{"chunks", 512}}, "ingest settings").ok());
  EXPECT_FALSE(
      ReadPayload<IngestSettings>(Json{{"chunk", 500}, {"shard", 4096}}, "ingest settings").ok());
  EXPECT_FALSE(ReadPayload<IngestSettings>(Json{{"codec", "jpeg"}}, "ingest settings").ok());
  EXPECT_FALSE(ReadPayload<IngestSettings>(Json{{"codec_level", 0}}, "ingest settings").ok());
  EXPECT_FALSE(ReadPayload<IngestSettings>(Json{{"mpp", -1.0}}, "ingest settings").ok());
  EXPECT_FALSE(ReadPayload<IngestSettings>(Json{{"mpp", "0.5"}}, "ingest settings").ok());
  EXPECT_FALSE(ReadPayload<IngestSettings>(Json{{"assume_mpp", 0}}, "ingest settings").ok());
  EXPECT_TRUE(ReadPayload<IngestSettings>(Json{{"assume_mpp", 50}}, "ingest settings").ok());
  EXPECT_FALSE(ReadPayload<IngestSettings>(Json{{"assume_mpp", 500}}, "ingest settings").ok())
      << "nanometres";
}

TEST(IngestSettingsText, CanonicalIgnoresWhatDoesNotChangeBytes) {
  IngestSettings a, b;
  b.keep_names = true;
  EXPECT_EQ(a.Canonical(), b.Canonical());
  b.codec_level = 6;
  EXPECT_NE(a.Canonical(), b.Canonical());
}

}  // namespace
}  // namespace patchbay::workers
