// The image and the place of each patch: counts against weights, places against counting pixels one
// by one.
#include <cmath>
#include <map>
#include <random>
#include <set>

#include <gtest/gtest.h>

#include "runtime/core/strings.h"
#include "runtime/model/plan/plan.h"
#include "runtime/model/positions/tissue_area.h"
#include "tests/contract/known_ops.h"
#include "tests/runtime/model/plan/built_plan.h"

namespace patchbay::plan {
namespace {

constexpr std::uint64_t kSamplingDraws = 1'000'000;

/// Whether `count` of kSamplingDraws draws is within 3 standard deviations of probability `p`.
void ExpectSamplingShare(std::uint64_t count, double p, const std::string& what) {
  const double expected = kSamplingDraws * p, sigma = std::sqrt(kSamplingDraws * p * (1 - p));
  EXPECT_LE(std::abs(static_cast<double>(count) - expected), 3 * sigma + 1e-9)
      << what << ": " << count << " of " << expected;
}

RunConfig SamplingConfig(const std::string& rest) {
  auto config = ParseRunConfig(
      StrCat("dataset: t.csv\nnumerics: cpu\nseed: 5\npatch: {size: [10, 10]}\n", rest),
      "run.yaml");
  EXPECT_TRUE(config.ok()) << config.status();
  return config.ok() ? *config : RunConfig{};
}

PlannedImage SampledImage(std::int64_t height, std::int64_t width,
                          std::vector<std::uint32_t> groups = {},
                          std::vector<PlaceCount> places = {}) {
  PlannedImage image{Sha256Of(StrCat(height, width)), "zarr", Flat(height, width), 3,
                     DType::kUint8};
  image.groups = std::move(groups);
  image.places = std::move(places);
  if (!image.places.empty()) {
    image.indexes = {Sha256Of("index")};
    image.labels = ImageLabels{Sha256Of("labels"), {{"a", 1}, {"b", 2}, {"c", 3}}};
  }
  return image;
}

TEST(AliasTable, CountsFollowTheWeights) {
  const std::vector<std::uint64_t> weights = {1, 0, 7, 1000, 92, 3, 3, 3};
  const auto table = AliasTable::Of(weights);
  ASSERT_TRUE(table.ok());
  std::mt19937_64 random(3);
  std::vector<std::uint64_t> counts(weights.size());
  for (std::uint64_t i = 0; i < kSamplingDraws; ++i) ++counts[table->Draw(random())];
  for (std::size_t i = 0; i < weights.size(); ++i) {
    ExpectSamplingShare(counts[i], static_cast<double>(weights[i]) / 1109, StrCat("weight ", i));
  }
  EXPECT_EQ(counts[1], 0u);
  EXPECT_FALSE(AliasTable::Of(std::vector<std::uint64_t>{0, 0}).ok());
  EXPECT_FALSE(AliasTable::Of({}).ok());
  EXPECT_FALSE(AliasTable::Of(std::vector<std::uint64_t>{~0ull, 2}).ok());
}

TEST(AliasTable, IsExactOverEveryUnit) {
  // 4 columns of 8 units: the 32 evenly spread words hit every unit once.
  const std::vector<std::uint64_t> weights = {5, 1, 0, 2};
  const auto table = AliasTable::Of(weights);
  ASSERT_TRUE(table.ok());
  std::vector<std::uint64_t> counts(4);
  for (std::uint64_t unit = 0; unit < 32; ++unit) ++counts[table->Draw((unit << 59) + 1)];
  EXPECT_EQ(counts, (std::vector<std::uint64_t>{20, 4, 0, 8}));
}

TEST(Sampling, SitesAndPatientsAreEquallyLikelyWhateverTheirSize) {
  const RunConfig config = SamplingConfig(
      "sampling: {positions: random, patches_per_epoch: 1000000, weight_by: [site, patient_id]}\n");
  // Site 0: patient 0 with two images of 1 and 3 patches, patient 1; site 1: one large image.
  const Plan plan =
      BuiltPlan(config, {SampledImage(10, 10, {0, 0}), SampledImage(10, 30, {0, 0}),
                         SampledImage(50, 50, {0, 1}), SampledImage(1000, 1000, {1, 0})});
  std::vector<std::uint64_t> counts(4);
  for (std::uint64_t i = 0; i < kSamplingDraws; ++i) ++counts[plan.SourceOf(0, i)->image];
  const double shares[] = {0.25 * 0.25, 0.25 * 0.75, 0.25, 0.5};
  for (std::size_t i = 0; i < 4; ++i)
    ExpectSamplingShare(counts[i], shares[i], StrCat("image ", i));
  const auto first = plan.DeriveSpec(0, 77), other = plan.DeriveSpec(1, 77);
  ASSERT_TRUE(first.ok() && other.ok());
  EXPECT_TRUE(WholeOf(plan.images()[first->image].size).Contains(first->box));
}

TEST(Sampling, ClassesFollowTheirWeightsAndImagesTheirPixels) {
  const RunConfig config = SamplingConfig(
      "labels: {set: gleason, mask: true}\n"
      "sampling: {positions: random, patches_per_epoch: 1000000, class_weights: {a: 0.3, b: 0.1, "
      "c: 0}}\n");
  // Image 1 has cells of 4 x 4 pixels: 25 of them are 400 pixels.
  const Plan plan = BuiltPlan(config, {SampledImage(90, 90, {}, {{100, 1}, {10, 1}, {0, 1}}),
                                       SampledImage(90, 90, {}, {{25, 16}, {0, 1}, {9, 1}})});
  std::map<std::pair<std::size_t, std::uint32_t>, std::uint64_t> counts;
  std::vector<std::uint64_t> numbers(10);
  for (std::uint64_t i = 0; i < kSamplingDraws; ++i) {
    const auto source = plan.SourceOf(3, i);
    ++counts[{source->set, source->image}];
    if (source->set == 1) ++numbers.at(source->number);
  }
  ExpectSamplingShare(counts[{0, 0}], 0.75 * 0.2, "class a of image 0");
  ExpectSamplingShare(counts[{0, 1}], 0.75 * 0.8, "class a of image 1");
  ExpectSamplingShare(counts[{1, 0}], 0.25, "class b");
  EXPECT_EQ(counts.size(), 3u);
  for (const std::uint64_t count : numbers) ExpectSamplingShare(count, 0.025, "places of class b");
  EXPECT_EQ(plan.DeriveSpec(0, 0).status().code(), absl::StatusCode::kFailedPrecondition);
}

TEST(Sampling, AClassThatNoImageHasIsRefusedByKey) {
  const RunConfig config = SamplingConfig(
      "labels: {set: g, mask: true}\nsampling: {positions: random, class_weights: {a: 1, b: 2}}\n");
  const auto plan = Plan::Build(config, {SampledImage(90, 90, {}, {{100, 1}, {0, 1}})});
  EXPECT_EQ(std::string(MessageOf(plan.status())),
            "plan: key 'sampling.class_weights.b': a weight of 2, but none of 1 images has a pixel "
            "of this class");
}

TEST(Sampling, AClassThatTheSetDoesNotHaveIsRefusedWithTheOneThatWasMeant) {
  const auto error = [](const std::string& weights) {
    PlannedImage image = SampledImage(90, 90, {}, {{100, 1}});
    image.labels->classes = {{"benign", 1}, {"gleason_3", 2}};
    return std::string(MessageOf(
        Plan::Build(
            SamplingConfig(StrCat("labels: {set: g, mask: true}\nsampling: {positions: random, ",
                                  "class_weights: {", weights, "}}\n")),
            {image})
            .status()));
  };
  EXPECT_EQ(error("gleason3: 1"),
            "plan: key 'sampling.class_weights': 'gleason3' is not a class of the set g: did you "
            "mean 'gleason_3'?");
  EXPECT_EQ(error("stroma: 1"),
            "plan: key 'sampling.class_weights': 'stroma' is not a class of the set g (it has "
            "benign, gleason_3)");
}

TEST(Sampling, TooLittleTissueSaysWhatToChange) {
  const auto error = [](const std::string& sampling) {
    return std::string(MessageOf(
        Plan::Build(
            SamplingConfig(StrCat("sampling: {tissue: {min_fraction: 0.5}", sampling, "}\n")),
            {SampledImage(90, 90, {}, {{0, 1}})})
            .status()));
  };
  const std::string said =
      "plan: key 'sampling.tissue': none of 1 images has a patch of which 0.5 is tissue of the "
      "set 'tissue': lower min_fraction, or make patches smaller";
  EXPECT_EQ(error(""), said);
}

TEST(Sampling, NoSlideBringsMoreThanItsLimit) {
  const Plan grid = BuiltPlan(SamplingConfig("sampling: {max_per_slide: 4}\n"),
                              {SampledImage(100, 100), SampledImage(10, 30)});
  ASSERT_EQ(grid.cumulative_patches(), (std::vector<std::uint64_t>{0, 4, 7}));
  std::set<std::string> first, second;
  for (std::uint64_t i = 0; i < 7; ++i) {
    const auto a = grid.DeriveSpec(0, i), b = grid.DeriveSpec(1, i);
    if (a->image == 0) first.insert(a->box.ToString());
    if (b->image == 0) second.insert(b->box.ToString());
  }
  EXPECT_EQ(first.size(), 4u);
  EXPECT_NE(first, second) << "other cells in another epoch";
  const Plan random = BuiltPlan(
      SamplingConfig("sampling: {positions: random, patches_per_epoch: 100, max_per_slide: 60}\n"),
      {SampledImage(100, 100), SampledImage(10, 30), SampledImage(10, 10)});
  EXPECT_EQ(random.cumulative_patches(), (std::vector<std::uint64_t>{0, 60, 90, 100}));
  const auto few = Plan::Build(
      SamplingConfig("sampling: {positions: random, patches_per_epoch: 100, max_per_slide: 60}\n"),
      {SampledImage(100, 100)});
  EXPECT_EQ(std::string(MessageOf(few.status())),
            "plan: key 'sampling.max_per_slide': 60 patches of each of 1 images are too few for an "
            "epoch");
}

TEST(Sampling, SharesAreCutAtTheLimitAndGoToTheOthers) {
  const std::vector<std::uint64_t> weights = {70, 20, 10};
  EXPECT_EQ(ShareOut(weights, 100, 100), weights);
  EXPECT_EQ(ShareOut(weights, 90, 50), (std::vector<std::uint64_t>{50, 26, 13}));
  EXPECT_EQ(ShareOut(weights, 100, 40), (std::vector<std::uint64_t>{40, 40, 20}));
  EXPECT_EQ(ShareOut(weights, 100, 30), (std::vector<std::uint64_t>{0, 0, 0}));
}

TEST(Sampling, StrideAndOverlapMakeTheGrid) {
  const std::vector<PlannedImage> images = {SampledImage(30, 25)};
  const auto boxes = [&](const std::string& sampling) {
    const Plan plan = BuiltPlan(
        SamplingConfig(StrCat("sampling: {order: sequential, ", sampling, "}\n")), images);
    std::vector<Box> all;
    for (std::uint64_t i = 0; i < plan.patches_per_epoch(); ++i) {
      all.push_back(plan.DeriveSpec(0, i)->box);
    }
    return all;
  };
  const std::vector<Box> overlapping = boxes("overlap: [5, 0]");
  ASSERT_EQ(overlapping.size(), 5u * 3u);
  EXPECT_EQ(overlapping[3], Box2D(5, 0, 10, 10));
  EXPECT_EQ(overlapping.back(), Box2D(20, 20, 10, 10));
  EXPECT_EQ(boxes("stride: [5, 10]"), overlapping);
  EXPECT_EQ(boxes("stride: [20, 20]").size(), 2u * 2u);
  EXPECT_EQ(RefusalOfConfig("sampling: {overlap: [10, 0]}\n"),
            "run.yaml:3: key 'sampling.overlap': 10 pixels: not less than the patch has");
  EXPECT_EQ(RefusalOfConfig("sampling: {stride: [1, 1, 1]}\n"),
            "run.yaml:3: key 'sampling.stride': expected 2 values, as patch.size has");
}

TEST(Sampling, ContradictionsAreRefused) {
  const auto says = [](const std::string& rest, const std::string& text) {
    EXPECT_NE(RefusalOfConfig(rest).find(text), std::string::npos) << RefusalOfConfig(rest);
  };
  says("sampling: {stride: [5, 5], overlap: [5, 5]}\n", "exclude each other");
  says("sampling: {positions: random, stride: [5, 5]}\n", "need positions: grid");
  says("sampling: {weight_by: site}\n", "weight_by needs positions: random");
  says("sampling: {positions: random, weight_by: site, order: sequential}\n", "has no place");
  says("sampling: {positions: random, weight_by: site, patches_per_image: 3}\n",
       "give patches_per_epoch");
  says("sampling: {positions: random, class_weights: {a: 1}}\n",
       "key 'sampling.class_weights': there is no labels.set");
  says("labels: {set: g, mask: true}\nsampling: {positions: random, class_weights: {a: 0}}\n",
       "no class has a weight above 0");
  says("labels: {set: g, mask: true}\nsampling: {positions: random, class_weights: {a: -1}}\n",
       "out of range");
  says("sampling: {tissue: {min_fraction: 1.5}}\n", "out of range");
  says("sampling: {tissue: {set: ../x}}\n", "no slash");
}

CellSet RandomMask(std::mt19937& random, std::uint32_t step, const Extent& size, bool* pixels) {
  CellSet set(step);
  for (std::int64_t y = 0; y * step + step / 2 < size.y; ++y) {
    for (std::int64_t x = 0; x * step + step / 2 < size.x; ++x) {
      if (random() % 3 == 0) continue;
      EXPECT_TRUE(
          set.Append({0, static_cast<std::uint32_t>(y), static_cast<std::uint32_t>(x), 1}).ok());
      for (std::int64_t i = 0; i < step * step; ++i) {
        const std::int64_t py = y * step + i / step, px = x * step + i % step;
        if (py < 64 && px < 64) pixels[py * 64 + px] = true;
      }
    }
  }
  return set;
}

TEST(Places, TissueIsCountedToThePixel) {
  for (unsigned seed = 0; seed < 20; ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937 random(seed);
    bool pixels[64 * 64] = {};
    const Extent size = Flat(50, 60);
    const TissueArea area(RandomMask(random, 8, size, pixels), size);
    TissueArea::Band band(area);
    std::int64_t y = 0, height = 0;
    for (int i = 0; i < 200; ++i) {
      if (i % 3 != 1) {  // else other columns of the same rows
        y = static_cast<int>(random() % 70) - 10;
        height = static_cast<int>(random() % 40) + 1;
      }
      const Box box = Box2D(y, static_cast<int>(random() % 70) - 10, height, random() % 40 + 1);
      std::uint64_t expected = 0;
      for (std::int64_t row = box.y; row < box.y + box.height; ++row) {
        for (std::int64_t x = box.x; x < box.x + box.width; ++x) {
          expected += row >= 0 && x >= 0 && row < 56 && x < 64 && pixels[row * 64 + x] ? 1 : 0;
        }
      }
      band.Lay(box.y, box.height);
      ASSERT_EQ(band.In(box.x, box.width), expected) << box.ToString();
    }
  }
}

PositionIndex IndexOf(const Extent& size, std::vector<ClassCells> classes) {
  return {size, std::move(classes)};
}

PlannedImage OfSize(const Extent& size) {
  PlannedImage image;
  image.size = size;
  return image;
}

TEST(Places, TissueIsTheOneClassThatIsNotBackground) {
  CellSet left(2), right(2);
  for (std::uint32_t y = 0; y < 20; ++y) ASSERT_TRUE(left.Append({0, y, 0, 8}).ok());
  for (std::uint32_t y = 0; y < 20; ++y) ASSERT_TRUE(right.Append({0, y, 8, 12}).ok());
  const PositionIndex mask =
      IndexOf(Flat(40, 40), {{0, "background", 960, right}, {1, "tissue", 640, left}});
  const RunConfig config = SamplingConfig("sampling: {tissue: {min_fraction: 1}}\n");
  const auto places = ImagePlaces::Of(config, OfSize(Flat(40, 40)), {.tissue = &mask});
  ASSERT_TRUE(places.ok()) << places.status();
  const PositionIndex alone = IndexOf(Flat(40, 40), {{1, "tissue", 640, left}});
  EXPECT_EQ(places->Counts()[0].places,
            ImagePlaces::Of(config, OfSize(Flat(40, 40)), {.tissue = &alone})->Counts()[0].places);
  const PositionIndex blank = IndexOf(Flat(40, 40), {{0, "background", 960, right}});
  EXPECT_EQ(ImagePlaces::Of(config, OfSize(Flat(40, 40)), {.tissue = &blank})->Counts()[0].places,
            0);
  const PositionIndex classes =
      IndexOf(Flat(40, 40), {{0, "benign", 960, right}, {2, "gleason_3", 640, left}});
  const auto refused = ImagePlaces::Of(config, OfSize(Flat(40, 40)), {.tissue = &classes});
  EXPECT_TRUE(absl::IsInvalidArgument(refused.status()));
  EXPECT_NE(refused.status().message().find("benign, gleason_3"), std::string_view::npos);
  const PositionIndex by_threshold =
      IndexOf(Flat(40, 40), {{0, "none", 960, right}, {1, "tissue", 640, left}});
  const auto mapped = ImagePlaces::Of(config, OfSize(Flat(40, 40)), {.tissue = &by_threshold});
  ASSERT_TRUE(mapped.ok()) << mapped.status();
  EXPECT_EQ(mapped->Counts()[0].places, places->Counts()[0].places);
  const PositionIndex three = IndexOf(
      Flat(40, 40), {{0, "none", 960, right}, {1, "tissue", 640, left}, {2, "fat", 640, left}});
  EXPECT_TRUE(absl::IsInvalidArgument(
      ImagePlaces::Of(config, OfSize(Flat(40, 40)), {.tissue = &three}).status()));
}

TEST(Places, AGridKeepsThePatchesWithEnoughTissue) {
  CellSet left(2);
  for (std::uint32_t y = 0; y < 20; ++y) ASSERT_TRUE(left.Append({0, y, 0, 8}).ok());
  const PositionIndex tissue = IndexOf(Flat(40, 40), {{1, "tissue", 640, left}});
  // Columns 0 to 15 are tissue: of the patches at x = 10, six of ten.
  const auto count = [&](double fraction, const std::string& more) {
    const auto places = ImagePlaces::Of(
        SamplingConfig(StrCat("sampling: {tissue: {min_fraction: ", fraction, "}", more, "}\n")),
        OfSize(Flat(40, 40)), {.tissue = &tissue});
    EXPECT_TRUE(places.ok()) << places.status();
    return places->Counts()[0].places;
  };
  EXPECT_EQ(count(0, ""), 16u);
  EXPECT_EQ(count(0.6, ""), 8u);
  EXPECT_EQ(count(0.61, ""), 4u);
  EXPECT_EQ(count(1, ", positions: random"), 16u * 4u) << "origins 0, 2, 4, 6 of 16 rows";
}

TEST(Places, APatchOfAClassHasItAtItsCentreAtEveryLevel) {
  CellSet cells(4);
  ASSERT_TRUE(cells.Append({0, 3, 5, 2}).ok());
  const PositionIndex classes = IndexOf(Flat(100, 200), {{3, "a", 32, cells}});
  const RunConfig config = SamplingConfig(
      "labels: {set: g, mask: true}\nsampling: {positions: random, class_weights: {a: 1, b: 1}}\n");
  for (const std::int64_t down : {1, 2, 4}) {
    const auto places =
        ImagePlaces::Of(config, OfSize(Flat(100 / down, 200 / down)), {.classes = &classes});
    ASSERT_TRUE(places.ok()) << places.status();
    EXPECT_EQ(places->Counts(), (std::vector<PlaceCount>{{2, 16}, {0, 1}}));
    const Point origin = places->OriginOf(0, 1);
    EXPECT_EQ(origin.y + 5, (3 * 4 + 2) / down);
    EXPECT_EQ(origin.x + 5, (6 * 4 + 2) / down);
  }
}

/// The first view of an image of `levels` at the config's mpp; level 0 has 0.5 um/px.
PlannedImage AtMpp(const RunConfig& config, const std::vector<Extent>& levels) {
  PlannedImage image;
  auto views = ChooseViews(MagnificationOf(config), levels, SpacingOfMpp(0.5, 0.5));
  EXPECT_TRUE(views.ok()) << views.status();
  if (!views.ok()) return image;
  image.views = *std::move(views);
  image.size = image.views.front().size;
  return image;
}

RunConfig PatchConfig(std::string_view patch, std::string_view rest) {
  auto config = ParseRunConfig(
      StrCat("dataset: t.csv\nnumerics: cpu\nseed: 5\npatch: ", patch, "\n", rest), "run.yaml");
  EXPECT_TRUE(config.ok()) << config.status();
  return config.ok() ? *config : RunConfig{};
}

TEST(Places, APatchOfAClassHasItUnderItsCentrePixelAtEveryMpp) {
  CellSet cells(4);
  ASSERT_TRUE(cells.Append({0, 30, 50, 2}).ok());
  const Extent full = Flat(403, 801);
  const PositionIndex classes = IndexOf(full, {{3, "a", 32, cells}});
  const std::vector<Extent> levels = {full, Flat(202, 401), Flat(101, 201)};
  for (const char* mpp : {"0.5", "0.7", "1", "1.3", "1.9", "2", "2.7", "5"}) {
    const RunConfig config = PatchConfig(StrCat("{size: [10, 11], mpp: [", mpp, "]}"),
                                         "labels: {set: g, mask: true}\n"
                                         "sampling: {positions: random, class_weights: {a: 1}}\n");
    const PlannedImage image = AtMpp(config, levels);
    const auto places = ImagePlaces::Of(config, image, {.classes = &classes});
    ASSERT_TRUE(places.ok()) << places.status();
    const Point origin = places->OriginOf(0, 1);
    const PlannedView& view = image.views.front();
    const auto under = [](std::int64_t begin, std::int64_t source, std::int64_t patch) {
      return begin + ((patch / 2) * 2 + 1) * source / (2 * patch);
    };
    EXPECT_EQ(under(origin.y, view.source.y, 10), std::floor(122 / view.downsample_y)) << mpp;
    EXPECT_EQ(under(origin.x, view.source.x, 11), std::floor(206 / view.downsample_x)) << mpp;
  }
}

TEST(Places, AtAnMppTissueIsWeighedOverWhatThePatchIsMadeOf) {
  CellSet left(2);
  for (std::uint32_t y = 0; y < 40; ++y) ASSERT_TRUE(left.Append({0, y, 0, 16}).ok());
  const PositionIndex tissue = IndexOf(Flat(80, 80), {{1, "tissue", 2560, left}});
  // Columns 0 to 31 of level 0; patches span 20 of them: of those at x = 20, 12 of 20.
  const auto count = [&](std::string_view sampling, const std::vector<Extent>& levels) {
    const RunConfig config =
        PatchConfig("{size: [10, 10], mpp: [1]}", StrCat("sampling: {", sampling, "}\n"));
    const auto places = ImagePlaces::Of(config, AtMpp(config, levels), {.tissue = &tissue});
    EXPECT_TRUE(places.ok()) << places.status();
    return places->Counts()[0].places;
  };
  for (const auto& levels : {std::vector<Extent>{Flat(80, 80)}, {Flat(80, 80), Flat(40, 40)}}) {
    EXPECT_EQ(count("tissue: {min_fraction: 0}", levels), 16u);
    EXPECT_EQ(count("tissue: {min_fraction: 0.6}", levels), 8u);
    EXPECT_EQ(count("tissue: {min_fraction: 0.61}", levels), 4u);
    const std::uint64_t rows = (80 - 20) / 2 + 1;  // rows of a lattice of two pixels of level 0
    EXPECT_EQ(count("tissue: {min_fraction: 1}, positions: random", levels), rows * 7);
  }
}

TEST(Places, AHugeCohortIsCountedInLittleTime) {
  const RunConfig config = SamplingConfig(
      "labels: {set: g, mask: true}\n"
      "sampling: {positions: random, patches_per_epoch: 10000000, class_weights: {a: 1, b: 2}, "
      "weight_by: [site]}\n");
  std::vector<PlannedImage> images;
  for (std::uint32_t i = 0; i < 10'000; ++i) {
    images.push_back(SampledImage(100'000, 100'000, {i % 7}, {{500 + i % 11, 256}, {500, 64}}));
  }
  const Plan plan = BuiltPlan(config, std::move(images));
  EXPECT_LT(plan.Text().size(), 4u << 20);
  EXPECT_EQ(plan.patches_per_epoch(), 10'000'000u);
}

}  // namespace
}  // namespace patchbay::plan
