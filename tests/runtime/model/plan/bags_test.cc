// Bags: every image once an epoch, and of it no patch twice; whole bags for every rank.
#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include <gtest/gtest.h>

#include "runtime/core/strings.h"
#include "runtime/model/plan/plan.h"
#include "tests/contract/known_ops.h"
#include "tests/runtime/model/plan/built_plan.h"

namespace patchbay::plan {
namespace {

constexpr char kBags[] = "batch: {by: image, patches: 8}\n";

RunConfig BagsConfig(const std::string& rest, std::uint32_t ranks = 1) {
  auto config = ParseRunConfig(
      StrCat("dataset: t.csv\nnumerics: cpu\nseed: 77\npatch: {size: [10, 10]}\n", rest),
      "run.yaml");
  EXPECT_TRUE(config.ok()) << config.status();
  if (!config.ok()) return {};
  EXPECT_TRUE(SettleBatch(*config, 0, ranks).ok());
  return *config;
}

/// An image of `patches` cells of the grid.
PlannedImage ImageOfPatches(std::int64_t patches) {
  return {Sha256Of(StrCat(patches)), "zarr", Flat(10, 10 * patches), 3, DType::kUint8};
}

std::vector<PlannedImage> Images(const std::vector<std::int64_t>& patches) {
  std::vector<PlannedImage> images;
  for (const std::int64_t count : patches) images.push_back(ImageOfPatches(count));
  return images;
}

struct Bag {
  std::uint32_t image = 0;
  std::vector<std::int64_t> x;  ///< left edges of its patches
  std::uint32_t padding = 0;
  bool operator==(const Bag&) const = default;
};

/// The bags of an epoch, each checked to have one image and its padding at the end.
std::vector<Bag> BagsOf(const Plan& plan, std::uint32_t epoch) {
  const std::uint64_t size = plan.bags()->size();
  std::vector<Bag> bags(plan.patches_per_epoch() / size);
  for (std::uint64_t ordinal = 0; ordinal < plan.patches_per_epoch(); ++ordinal) {
    Bag& bag = bags[ordinal / size];
    const auto spec = plan.DeriveSpec(epoch, ordinal);
    EXPECT_TRUE(spec.ok()) << spec.status();
    if (ordinal % size == 0) bag.image = spec->image;
    EXPECT_EQ(spec->image, bag.image);
    EXPECT_EQ(spec->key.ordinal, ordinal);
    if (spec->pad) {
      ++bag.padding;
      continue;
    }
    EXPECT_EQ(bag.padding, 0u) << "a patch behind padding";
    bag.x.push_back(spec->box.x);
  }
  return bags;
}

TEST(Bags, AnEpochHasEveryImageOnceAndNoPatchTwice) {
  const std::vector<std::int64_t> counts = {40, 3, 8, 9, 1, 1000, 7};
  const Plan plan = BuiltPlan(BagsConfig(kBags), Images(counts));
  EXPECT_EQ(plan.bags()->count(), 7u);
  EXPECT_EQ(plan.bags()->ShortCount(), 3u);
  EXPECT_EQ(plan.patches_per_epoch(), 56u);
  std::set<std::vector<std::uint32_t>> orders;
  for (std::uint32_t epoch = 0; epoch < 20; ++epoch) {
    std::vector<std::uint32_t> order;
    for (const Bag& bag : BagsOf(plan, epoch)) {
      order.push_back(bag.image);
      const auto taken = static_cast<std::size_t>(std::min<std::int64_t>(8, counts[bag.image]));
      const std::set<std::int64_t> different(bag.x.begin(), bag.x.end());
      EXPECT_EQ(bag.x.size(), taken);
      EXPECT_EQ(different.size(), taken) << "image " << bag.image << " has a patch twice";
      EXPECT_EQ(bag.padding, 8 - taken);
      EXPECT_LE(*different.rbegin(), 10 * (counts[bag.image] - 1));
    }
    orders.insert(order);
    std::sort(order.begin(), order.end());
    EXPECT_EQ(order, (std::vector<std::uint32_t>{0, 1, 2, 3, 4, 5, 6}));
  }
  EXPECT_GT(orders.size(), 15u) << "the order is that of every epoch";
  EXPECT_EQ(BagsOf(plan, 3), BagsOf(plan, 3));
  EXPECT_NE(BagsOf(plan, 3)[0].x, BagsOf(plan, 4)[0].x);
}

TEST(Bags, SequentialIsTheTablesOrderAndMarksTheLastPatch) {
  const Plan plan =
      BuiltPlan(BagsConfig(StrCat("sampling: {order: sequential}\n", kBags)), Images({40, 3, 8}));
  const std::vector<Bag> bags = BagsOf(plan, 5);
  for (std::uint32_t i = 0; i < 3; ++i) EXPECT_EQ(bags[i].image, i);
  EXPECT_NE(bags[0], BagsOf(plan, 6)[0]) << "other patches in another epoch";
  std::vector<std::uint64_t> last;
  for (std::uint64_t i = 0; i < plan.patches_per_epoch(); ++i) {
    if (plan.IsLastOfImage(*plan.DeriveSpec(0, i))) last.push_back(i);
  }
  EXPECT_EQ(last, (std::vector<std::uint64_t>{7, 10, 23}));
  EXPECT_EQ(plan.ImageRunLengths(), (std::vector<std::uint64_t>{8, 8, 8}));
  std::vector<std::string> names;
  for (const ArrayLayout& array : plan.layout().arrays) names.push_back(array.name);
  EXPECT_EQ(names, (std::vector<std::string>{"image", "ordinal", "image_index", "level", "box",
                                             "last_of_image"}));
}

/// Whether `count` of `draws` with probability `p` is within 4.5 standard deviations.
void ExpectShareOfDraws(std::uint64_t count, std::uint64_t draws, double p,
                        const std::string& what) {
  const auto n = static_cast<double>(draws);
  EXPECT_LE(std::abs(static_cast<double>(count) - n * p), 4.5 * std::sqrt(n * p * (1 - p)))
      << what << ": " << count << " of " << n * p;
}

TEST(Bags, PatchesPairsAndPlacesAreEquallyLikely) {
  constexpr std::uint32_t kEpochs = 20'000;
  const Plan plan =
      BuiltPlan(BagsConfig("batch: {by: image, patches: 3}\n"), Images({11, 5, 2, 64}));
  std::map<std::int64_t, std::uint64_t> taken, first;
  std::map<std::pair<std::int64_t, std::int64_t>, std::uint64_t> pairs;
  std::map<std::pair<std::uint64_t, std::uint32_t>, std::uint64_t> turns;
  for (std::uint32_t epoch = 0; epoch < kEpochs; ++epoch) {
    for (std::uint64_t bag = 0; bag < 4; ++bag) {
      std::vector<std::int64_t> x;
      const std::uint32_t image = plan.DeriveSpec(epoch, bag * 3)->image;
      ++turns[{bag, image}];
      if (image != 0) continue;
      for (std::uint64_t i = 0; i < 3; ++i) {
        x.push_back(plan.DeriveSpec(epoch, bag * 3 + i)->box.x / 10);
      }
      ++first[x[0]];
      std::sort(x.begin(), x.end());
      for (const std::int64_t one : x) ++taken[one];
      ++pairs[{x[0], x[1]}], ++pairs[{x[0], x[2]}], ++pairs[{x[1], x[2]}];
    }
  }
  ASSERT_EQ(taken.size(), 11u);
  ASSERT_EQ(pairs.size(), 55u);
  ASSERT_EQ(turns.size(), 16u);
  for (const auto& [x, count] : taken)
    ExpectShareOfDraws(count, kEpochs, 3.0 / 11, StrCat("patch ", x));
  for (const auto& [x, count] : first)
    ExpectShareOfDraws(count, kEpochs, 1.0 / 11, StrCat("first ", x));
  for (const auto& [pair, count] : pairs) {
    ExpectShareOfDraws(count, kEpochs, 3.0 / 55, StrCat("pair ", pair.first, ", ", pair.second));
  }
  for (const auto& [turn, count] : turns) {
    ExpectShareOfDraws(count, kEpochs, 0.25, StrCat("image ", turn.second, " as bag ", turn.first));
  }
}

TEST(Bags, TissueAndTablesOfPlacesSayWhatThereIs) {
  const std::string tissue = StrCat("sampling: {tissue: {min_fraction: 0.5}}\n", kBags);
  std::vector<PlannedImage> images = Images({40, 40, 40});
  const std::uint64_t places[] = {20, 0, 5};
  for (std::size_t i = 0; i < 3; ++i) {
    images[i].indexes = {Sha256Of("index")};
    images[i].places = {{places[i], 1}};
  }
  const Plan plan = BuiltPlan(BagsConfig(tissue), images);
  EXPECT_EQ(plan.bags()->count(), 2u) << "an image without tissue has no bag";
  EXPECT_EQ(plan.bags()->ShortCount(), 1u);
  EXPECT_EQ(plan.cumulative_patches(), (std::vector<std::uint64_t>{0, 8, 8, 16}));
  for (std::uint64_t i = 0; i < 16; ++i) {
    const auto source = plan.SourceOf(1, i);
    EXPECT_NE(source->image, 1u);
    if (!source->pad) EXPECT_LT(source->number, places[source->image]);
  }
  std::vector<PlannedImage> listed = Images({40, 40});
  listed[0].listed = {{0, 3}, {0, 9}, {0, 5}};
  listed[1].listed = {{0, 1}};
  const RunConfig config =
      BagsConfig("sampling: {positions: places.csv}\nbatch: {by: image, patches: 2}\n");
  const Plan from_table = BuiltPlan(config, listed);
  for (const Bag& bag : BagsOf(from_table, 2)) {
    EXPECT_EQ(bag.x.size(), bag.image == 0 ? 2u : 1u);
    for (const std::int64_t x : bag.x) EXPECT_TRUE(bag.image == 0 ? x % 2 == 1 && x > 1 : x == 1);
  }
}

TEST(Bags, ARanksPartIsWholeBags) {
  const std::vector<PlannedImage> five = Images({40, 3, 8, 9, 11});
  const Plan one = BuiltPlan(BagsConfig(kBags), five);
  EXPECT_EQ(one.config().global_size, 8u);
  EXPECT_EQ(BatchesPerEpoch(*one.Geometry(1)), 5u);
  EXPECT_EQ(one.Geometry(2).status().message(),
            "plan stream: key 'batch.patches': a batch of 8 patches on 2 ranks: not a whole number "
            "of bags of 8 for each");
  const Plan two = BuiltPlan(BagsConfig(kBags, 2), five);
  EXPECT_EQ(two.config().global_size, 16u);
  EXPECT_TRUE(two.Geometry(1).ok()) << "two bags a step";
  EXPECT_EQ(two.Geometry(2).status().message(),
            "plan stream: key 'batch.tail': 1 bag in the last batch, for 2 ranks: choose drop, pad "
            "or wrap");
  for (const char* tail : {"drop", "pad", "wrap"}) {
    const Plan plan = BuiltPlan(
        BagsConfig(StrCat("batch: {by: image, patches: 8, tail: ", tail, "}\n"), 2), five);
    const auto geometry = plan.Geometry(2);
    ASSERT_TRUE(geometry.ok()) << geometry.status();
    for (std::uint64_t batch = 0; batch < BatchesPerEpoch(*geometry); ++batch) {
      for (std::uint32_t rank = 0; rank < 2; ++rank) {
        const PatchRun part = RankRun(*geometry, batch, rank);
        EXPECT_EQ(part.count, 8u);
        EXPECT_EQ(part.first_ordinal % 8, 0u);
        const auto first = plan.SourceOf(0, part.first_ordinal);
        ASSERT_TRUE(first.ok()) << first.status();
        for (std::uint64_t i = 0; i < 8 && !first->pad; ++i) {
          EXPECT_EQ(plan.SourceOf(0, part.first_ordinal + i)->image, first->image);
        }
      }
    }
  }
  const RunConfig four = BagsConfig("batch: {by: image, patches: 8, global_size: 32}\n");
  EXPECT_EQ(four.global_size, 32u);
  EXPECT_EQ(BuiltPlan(four, Images({8, 8, 8, 8})).Geometry(4)->global_batch, 32u);
}

TEST(Bags, AResumedRunKeepsItsBatch) {
  auto config = ParseRunConfig(StrCat("dataset: a\npatch: {size: [10, 10]}\n", kBags), "run.yaml");
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_EQ(config->per_rank, 8u);
  EXPECT_TRUE(config->meta) << "ordinals say what is padding";
  const auto again = RunConfigFromJson(ToJson(*config));
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_EQ(ToJson(*again), ToJson(*config));
  ASSERT_TRUE(SettleBatch(*config, 32, 2).ok());
  EXPECT_EQ(config->global_size, 32u);
  EXPECT_EQ(config->bag, 8u);
}

TEST(Bags, ConfigsOfBagsThatCannotBeAreRefusedByKey) {
  const auto refuses = [](const std::string& rest, const std::string& cause) {
    EXPECT_NE(RefusalOfConfig(rest).find(cause), std::string::npos) << RefusalOfConfig(rest);
  };
  refuses("batch: {by: image}\n", "key 'batch.by': bags need `patches`, the number in a bag");
  refuses("batch: {patches: 8}\n", "key 'batch.patches': the patches of a bag: needs by: image");
  refuses("batch: {by: slide, patches: 8}\n", "key 'batch.by'");
  refuses("batch: {by: image, patches: 0}\n", "key 'batch.patches'");
  refuses("batch: {by: image, patches: 8, global_size: 20}\n",
          "key 'batch.global_size': 20 patches: not whole bags of 8");
  refuses("batch: {by: image, patches: 8, per_rank: 4}\n",
          "key 'batch.per_rank': 4 patches: not whole bags of 8");
  refuses(StrCat("sampling: {positions: random}\n", kBags),
          "key 'sampling.positions': a bag takes no patch twice");
  refuses(StrCat("sampling: {max_per_slide: 4}\n", kBags), "key 'sampling.max_per_slide': bags");
  refuses(StrCat("sampling: {positions: p.csv, weight_by: [site]}\n", kBags),
          "key 'sampling.weight_by': bags take every image once");
}

TEST(Bags, ASplitHasBagsOfItsOwn) {
  const auto config = ParseRunConfig(
      "dataset: t.csv\npatch: {size: [10, 10]}\nsplit_column: fold\n"
      "batch: {by: image, patches: 64, dtype: uint8}\n"
      "splits: {val: {batch: {patches: 16}}, test: {batch: {by: patch, global_size: 40}}}\n",
      "run.yaml");
  ASSERT_TRUE(config.ok()) << config.status();
  const auto val = ForSplit(*config, "val"), test = ForSplit(*config, "test");
  ASSERT_TRUE(val.ok()) << val.status();
  ASSERT_TRUE(test.ok()) << test.status();
  EXPECT_EQ(val->bag, 16u);
  EXPECT_EQ(val->per_rank, 16u);
  EXPECT_EQ(test->bag, 0u);
  EXPECT_EQ(test->global_size, 40u);
  EXPECT_EQ(test->dtype, DType::kUint8);
}

TEST(Bags, TheDrawIsAPromise) {
  const Plan plan = BuiltPlan(BagsConfig("batch: {by: image, patches: 4}\n"), Images({20, 3, 9}));
  std::vector<std::int64_t> drawn;
  for (const Bag& bag : BagsOf(plan, 1)) {
    drawn.push_back(bag.image);
    for (const std::int64_t x : bag.x) drawn.push_back(x / 10);
  }
  EXPECT_EQ(drawn, (std::vector<std::int64_t>{0, 12, 13, 17, 6, 1, 2, 1, 0, 2, 1, 6, 7, 3}));
}

}  // namespace
}  // namespace patchbay::plan
