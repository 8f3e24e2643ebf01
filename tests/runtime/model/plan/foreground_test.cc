// Patches on the foreground of volumes: the files they are drawn from, and counts against chances.
#include <algorithm>
#include <cmath>
#include <map>

#include <gtest/gtest.h>

#include "runtime/core/strings.h"
#include "runtime/model/plan/class_histograms.h"
#include "runtime/model/plan/plan.h"
#include "runtime/model/positions/component_index.h"
#include "tests/contract/known_ops.h"

namespace patchbay::plan {
namespace {

constexpr std::uint64_t kForegroundDraws = 100'000;
const Extent kSize{40, 50, 60};

void ExpectForegroundShare(std::uint64_t count, double p, const std::string& what) {
  const double expected = kForegroundDraws * p, sigma = std::sqrt(kForegroundDraws * p * (1 - p));
  EXPECT_LE(std::abs(static_cast<double>(count) - expected), 3 * sigma + 1e-9)
      << what << ": " << count << " of " << expected;
}

CellSet BoxOf(const Point& at, std::uint32_t depth, std::uint32_t height, std::uint32_t width) {
  CellSet cells(1);
  for (std::uint32_t z = 0; z < depth; ++z) {
    for (std::uint32_t y = 0; y < height; ++y) {
      EXPECT_TRUE(
          cells
              .Append({static_cast<std::uint32_t>(at.z) + z, static_cast<std::uint32_t>(at.y) + y,
                       static_cast<std::uint32_t>(at.x), width})
              .ok());
    }
  }
  return cells;
}

/// A large and a small tumour, and a polyp.
ComponentIndex Components() {
  ComponentIndex index;
  index.size = kSize;
  index.classes = {
      {0, "background", true, {BoxOf({0, 0, 0}, 1, 2, 60)}},
      {1, "tumour", true, {BoxOf({5, 5, 5}, 10, 10, 10), BoxOf({30, 40, 50}, 1, 1, 2)}},
      {2, "polyp", true, {BoxOf({38, 2, 2}, 2, 3, 4)}}};
  return index;
}

PositionIndex ForegroundPositions() {
  PositionIndex index;
  index.size = kSize;
  for (const ClassComponents& one : Components().classes) {
    CellSet cells(1);
    for (const CellSet& part : one.components) cells = *CellSet::Union(cells, part);
    index.classes.push_back({one.value, one.name, cells.size(), cells});
  }
  return index;
}

PlannedImage VolumeOfSize() { return {Sha256Of("v"), "zarr", kSize, 1, DType::kInt16}; }

RunConfig ForegroundConfig(const std::string& sampling) {
  auto config =
      ParseRunConfig(StrCat("dataset: t.csv\nnumerics: cpu\nseed: 5\npatch: {size: [16, 16, 16]}\n",
                            "labels: {set: lesions, mask: true}\nbatch: {global_size: 16}\n",
                            "sampling: {positions: random, patches_per_epoch: ", kForegroundDraws,
                            ", ", sampling, "}\n"),
                     "run.yaml");
  EXPECT_TRUE(config.ok()) << config.status();
  return config.ok() ? *config : RunConfig{};
}

PlannedImage ForegroundImage(const ImagePlaces& places, std::size_t indexes,
                             const std::string& name) {
  PlannedImage image{Sha256Of(name), "zarr", kSize, 1, DType::kInt16};
  image.labels = ImageLabels{Sha256Of("l"), {{"background", 0}, {"tumour", 1}, {"polyp", 2}}};
  image.indexes.assign(indexes, Sha256Of("index"));
  image.places = places.Counts();
  return image;
}

struct Drawn {
  std::map<std::size_t, std::uint64_t> by_set;
  std::uint64_t small = 0;  ///< centred on the small tumour
  std::uint64_t outside = 0;
};

Drawn DrawAll(const RunConfig& config) {
  const ComponentIndex components = Components();
  const PositionIndex positions = ForegroundPositions();
  const auto places =
      ImagePlaces::Of(config, VolumeOfSize(), {.classes = &positions, .components = &components});
  EXPECT_TRUE(places.ok()) << places.status();
  const std::size_t indexes = config.foreground->by_component ? 2 : 1;
  auto plan = Plan::Build(
      config, {ForegroundImage(*places, indexes, "a"), ForegroundImage(*places, indexes, "b")});
  EXPECT_TRUE(plan.ok()) << plan.status();
  EXPECT_EQ(ParsePlan(plan->Text())->digest(), plan->digest());
  Drawn drawn;
  for (std::uint64_t i = 0; i < kForegroundDraws; ++i) {
    const PatchSource source = *plan->SourceOf(0, i);
    const Box box = plan->SpecOf(source, &*places)->box;
    ++drawn.by_set[source.set];
    const Point centre{box.z + 8, box.y + 8, box.x + 8};
    // The profiles that clamp move a centre near the end of the image inside it.
    drawn.small += source.set == 1 && centre.z >= 24 ? 1 : 0;
    const bool is_inside = box.z >= 0 && box.y >= 0 && box.x >= 0 && box.z + 16 <= kSize.z &&
                           box.y + 16 <= kSize.y && box.x + 16 <= kSize.x;
    drawn.outside += is_inside ? 0 : 1;
  }
  return drawn;
}

TEST(Foreground, SmallLesionsCountEquallyByComponent) {
  const Drawn drawn = DrawAll(ForegroundConfig(
      "oversample_foreground: 0.33, foreground: {by: component, classes: [tumour, polyp]}"));
  ExpectForegroundShare(drawn.by_set.at(0), 0.67, "anywhere");
  ExpectForegroundShare(drawn.by_set.at(1), 0.165, "tumour");
  ExpectForegroundShare(drawn.by_set.at(2), 0.165, "polyp");
  ExpectForegroundShare(drawn.small, 0.0825, "the small tumour");
  EXPECT_EQ(drawn.outside, 0u);
}

TEST(Foreground, ByVoxelLargeLesionsPrevail) {
  const Drawn drawn = DrawAll(ForegroundConfig("oversample_foreground: 1"));
  EXPECT_EQ(drawn.by_set.count(0), 0u);
  ExpectForegroundShare(drawn.by_set.at(1), 0.5, "tumour");
  ExpectForegroundShare(drawn.small, 0.5 * 2 / 1002, "the small tumour");
}

TEST(Foreground, NnunetForcesTheLastOfEachBatchAndMayPassTheEnd) {
  const RunConfig config = ForegroundConfig(
      "oversample_foreground: 0.33, foreground: {profile: nnunet, classes: [polyp]}");
  const Drawn drawn = DrawAll(config);
  EXPECT_EQ(drawn.by_set.at(1), kForegroundDraws / 16 * 5);  // 16 - round(16 * 0.67)
  EXPECT_EQ(drawn.outside, drawn.by_set.at(1));              // slices 38 and 39 of 40
  const Drawn tied = DrawAll(ForegroundConfig(
      "oversample_foreground: 0.71875, foreground: {profile: nnunet, classes: [polyp]}"));
  EXPECT_EQ(tied.by_set.at(1), kForegroundDraws / 16 * 12) << "of 4.5 the even one is not forced";
}

TEST(Foreground, MonaiCentresTheOthersOnBackground) {
  const Drawn drawn = DrawAll(ForegroundConfig(
      "oversample_foreground: 0.5, foreground: {profile: monai, classes: [tumour]}"));
  ExpectForegroundShare(drawn.by_set.at(0), 0.5, "background");
  EXPECT_EQ(drawn.outside, 0u);
}

TEST(Foreground, EveryVoxelOfAClassIsACentre) {
  const RunConfig config =
      ForegroundConfig("oversample_foreground: 1, foreground: {profile: nnunet, classes: [polyp]}");
  const PositionIndex positions = ForegroundPositions();
  const auto places = ImagePlaces::Of(config, VolumeOfSize(), {.classes = &positions});
  ASSERT_TRUE(places.ok());
  ASSERT_EQ(places->Counts()[1].places, 24u);
  for (std::uint64_t n = 0; n < 24; ++n) {
    // As nnU-Net: the voxel less half the patch, not below 0, and no limit above.
    const Point voxel = positions.Find("polyp")->cells.Cell(n);
    EXPECT_EQ(places->OriginOf(1, n), (Point{voxel.z - 8, 0, 0}));
  }
}

TEST(Foreground, WhatCannotBeDrawnIsRefused) {
  const auto error = [](const std::string& sampling) {
    return std::string(MessageOf(
        ParseRunConfig(
            StrCat("dataset: t.csv\npatch: {size: [8, 8, 8]}\nlabels: {set: l, mask: true}\n",
                   "sampling: {", sampling, "}\n"),
            "run.yaml")
            .status()));
  };
  EXPECT_NE(error("oversample_foreground: 0.3").find("positions: random"), std::string::npos);
  EXPECT_NE(error("positions: random, foreground: {by: voxel}").find("oversample_foreground"),
            std::string::npos);
  EXPECT_NE(error("positions: random, oversample_foreground: 1.5").find("run.yaml:4"),
            std::string::npos);
  EXPECT_NE(error("positions: random, oversample_foreground: 0.5, class_weights: {a: 1}")
                .find("excludes class_weights"),
            std::string::npos);
  const RunConfig unknown =
      ForegroundConfig("oversample_foreground: 0.33, foreground: {classes: [tumor]}");
  const PositionIndex positions = ForegroundPositions();
  const auto refused = ImagePlaces::Of(unknown, VolumeOfSize(), {.classes = &positions});
  EXPECT_NE(MessageOf(refused.status()).find("'tumor': not a class"), std::string::npos);
  ComponentIndex many = Components();
  many.classes[1].is_indexed = false;
  const RunConfig parts = ForegroundConfig(
      "oversample_foreground: 0.3, foreground: {by: component, classes: [tumour]}");
  const auto noise =
      ImagePlaces::Of(parts, VolumeOfSize(), {.classes = &positions, .components = &many});
  EXPECT_NE(MessageOf(noise.status()).find("sample it by voxel"), std::string::npos);
}

TEST(ComponentIndex, ReadsWhatItWrote) {
  ComponentIndex index = Components();
  index.classes[2].is_indexed = false;
  index.classes[2].components.clear();
  const std::string text = EncodeComponentIndex(index);
  ASSERT_TRUE(DecodeComponentIndex(text).ok()) << DecodeComponentIndex(text).status();
  EXPECT_EQ(*DecodeComponentIndex(text), index);
  for (std::size_t i = 0; i < text.size(); ++i) {
    std::string damaged = text;
    damaged[i] = static_cast<char>(damaged[i] ^ 4);
    EXPECT_FALSE(DecodeComponentIndex(damaged).ok()) << i;
    EXPECT_FALSE(DecodeComponentIndex(text.substr(0, i)).ok()) << i;
  }
}

TEST(ClassHistograms, ReadWhatTheyWroteAndAddUp) {
  ClassHistograms a, b;
  a.classes = {{0, "background", {{-32768, 7}, {-1024, 1'000'000}, {32767, 1}}}, {2, "liver", {}}};
  b.classes = {{1, "tumour", {{40, 5}}}, {2, "liver", {{60, 2}, {61, 3}}}};
  for (const ClassHistograms& one : {a, b}) {
    const std::string text = EncodeClassHistograms(one);
    ASSERT_TRUE(DecodeClassHistograms(text).ok()) << DecodeClassHistograms(text).status();
    EXPECT_EQ(*DecodeClassHistograms(text), one);
    for (std::size_t i = 0; i < text.size(); ++i) {
      EXPECT_FALSE(DecodeClassHistograms(text.substr(0, i)).ok()) << i;
    }
  }
  ClassHistograms ab = a, ba = b;
  ASSERT_TRUE(ab.Merge(b).ok());
  ASSERT_TRUE(ba.Merge(a).ok());
  EXPECT_EQ(ab, ba);
  EXPECT_EQ(ab.Find("liver")->counts.at(61), 3u);
  b.classes[0].name = "other";
  EXPECT_FALSE(ab.Merge(b).ok());
}

}  // namespace
}  // namespace patchbay::plan
