#include "runtime/model/plan/plan.h"

#include <array>
#include <cmath>
#include <set>

#include <gtest/gtest.h>

#include "ops/chain/chain.h"
#include "runtime/core/strings.h"
#include "runtime/memory/host_buffer.h"
#include "runtime/model/draw/permutation.h"
#include "runtime/model/plan/bands.h"
#include "runtime/model/plan/byte_versions.h"
#include "tests/contract/known_ops.h"

namespace patchbay::plan {
namespace {

RunConfig SmallConfig() {
  RunConfig config;
  config.ops = &ops::Table();
  config.dataset = {"/secret/patient.svs"};
  config.numerics = Numerics::kCpu;
  config.seed = 7678;
  config.patch.y = 100;
  config.patch.x = 50;
  config.global_size = 8;
  config.dtype = DType::kFloat16;
  return config;
}

std::vector<PlannedImage> TwoImages() {
  PlannedImage a{Sha256Of("a"), "zarr", Flat(250, 120), 3, DType::kUint8};
  PlannedImage b{Sha256Of("b"), "aperio", Flat(100, 30), 3, DType::kUint8};
  return {a, b};
}

Plan Built(const RunConfig& config) {
  auto plan = Plan::Build(config, TwoImages());
  EXPECT_TRUE(plan.ok()) << plan.status();
  return *std::move(plan);
}

TEST(Plan, TheGridCoversEveryPixelWithEdgePatchesReachingOut) {
  RunConfig config = SmallConfig();
  config.order = PatchOrder::kSequential;
  const Plan plan = Built(config);
  ASSERT_EQ(plan.cumulative_patches(), (std::vector<std::uint64_t>{0, 9, 10}));
  std::vector<Box> boxes;
  for (std::uint64_t i = 0; i < 10; ++i) boxes.push_back(plan.DeriveSpec(0, i)->box);
  EXPECT_EQ(boxes[0], Box2D(0, 0, 100, 50));
  EXPECT_EQ(boxes[2], Box2D(0, 100, 100, 50));
  EXPECT_EQ(boxes[8], Box2D(200, 100, 100, 50));
  EXPECT_EQ(boxes[9], Box2D(0, 0, 100, 50));
  EXPECT_EQ(plan.DeriveSpec(0, 9)->image, 1u);
}

TEST(Plan, AMapIsCutImageByImageAndItsEpochDecidesNothing) {
  RunConfig config = SmallConfig();
  config.order = PatchOrder::kSequential;
  const std::string before = Built(config).Text();
  EXPECT_EQ(before.find("outputs"), std::string::npos);
  EXPECT_TRUE(Built(config).Geometry(1)->units.empty());
  config.outputs["tumour"]["kind"] = "map";
  config.weights = {"/secret/model.pt"};
  config.meta = true;
  const Plan plan = Built(config);
  EXPECT_NE(plan.Text().find(R"("outputs":{"tumour":{"kind":"map"}})"), std::string::npos);
  EXPECT_EQ(plan.Text().find("secret"), std::string::npos);
  const auto again = Plan::Parse(ops::Table(), plan.Text());
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_EQ(again->digest(), plan.digest());
  const auto geometry = plan.Geometry(1);
  ASSERT_TRUE(geometry.ok()) << geometry.status();
  EXPECT_EQ(geometry->units.units(), 2u);
  EXPECT_EQ(BatchesPerEpoch(*geometry), 3u) << "of 9 patches two, of 1 patch one";
  EXPECT_FALSE(plan.Geometry(2).ok());
  const PatchSpec first = *plan.DeriveSpec(0, 3), third = *plan.DeriveSpec(2, 3);
  EXPECT_EQ(first.box, third.box);
  EXPECT_EQ(first.key.epoch, third.key.epoch);
}

TEST(Plan, AMapWithManyPatchesIsCutIntoBandsOfWholeRows) {
  RunConfig config = SmallConfig();
  config.order = PatchOrder::kSequential;
  config.patch = {1, 2, 2};
  const auto bands = [&](const PlannedImage& image) {
    std::vector<std::uint64_t> found;
    const UnitRuns units = Plan::Build(config, {image, TwoImages()[1]})->Geometry(1)->units;
    for (std::uint64_t i = 0; i < units.units(); ++i) found.push_back(units.At(i).patches);
    return found;
  };
  config.outputs["tumour"]["kind"] = "map";
  config.meta = true;
  using Counts = std::vector<std::uint64_t>;
  const PlannedImage slide{Sha256Of("a"), "zarr", Flat(400, 120), 3, DType::kUint8};
  EXPECT_EQ(bands(slide), (Counts{4'080, 4'080, 3'840, 750})) << "60 x 68 and 60 x 64 of 12,000";
  EXPECT_EQ(bands({Sha256Of("b"), "zarr", Flat(200, 120), 3, DType::kUint8}), (Counts{6'000, 750}));
  EXPECT_EQ(CutBands(20'000, 9'000), (Counts{9'000, 11'000})) << "a row is never cut";
  EXPECT_EQ(CutBands(9'000, 1), (Counts{4'096, 4'904}));
  EXPECT_EQ(CutBands(7, 7), (Counts{7}));
  const Plan plan = *Plan::Build(config, {slide, TwoImages()[1]});
  EXPECT_EQ(FirstUnits(plan.cumulative_patches(), plan.Geometry(1)->units), (Counts{0, 3, 4}));
}

RunConfig VolumeConfig() {
  RunConfig config = SmallConfig();
  config.patch = {32, 96, 64};
  config.has_depth = true;
  config.order = PatchOrder::kSequential;
  return config;
}

PlannedImage Volume() { return {Sha256Of("v"), "zarr", {70, 200, 64}, 1, DType::kInt16}; }

TEST(Plan, TheGridOfAVolumeRunsAlongAllAxes) {
  const auto plan = Plan::Build(VolumeConfig(), {Volume()});
  ASSERT_TRUE(plan.ok()) << plan.status();
  ASSERT_EQ(plan->patches_per_epoch(), 9u);
  EXPECT_EQ(plan->DeriveSpec(0, 0)->box, BoxAt({0, 0, 0}, {32, 96, 64}));
  EXPECT_EQ(plan->DeriveSpec(0, 2)->box, BoxAt({0, 192, 0}, {32, 96, 64}));
  EXPECT_EQ(plan->DeriveSpec(0, 8)->box, BoxAt({64, 192, 0}, {32, 96, 64}));
  EXPECT_EQ(plan->layout().arrays.front().shape, (std::vector<std::int64_t>{1, 32, 96, 64}));
  EXPECT_EQ(plan->fill(), -1024);
  const auto again = ParsePlan(plan->Text());
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_EQ(again->digest(), plan->digest());
}

TEST(Plan, RandomPlacesOfAVolumeReachEverySliceAndStayInside) {
  RunConfig config = VolumeConfig();
  config.positions = Positions::kRandom;
  config.patches_per_epoch = 2000;
  const auto plan = Plan::Build(config, {Volume()});
  ASSERT_TRUE(plan.ok()) << plan.status();
  std::set<std::int64_t> z;
  for (std::uint64_t i = 0; i < 2000; ++i) {
    const Box box = plan->DeriveSpec(1, i)->box;
    ASSERT_TRUE(WholeOf(Volume().size).Contains(box)) << box.ToString();
    z.insert(box.z);
  }
  EXPECT_EQ(z.size(), 70u - 32 + 1);
}

TEST(Plan, WhatDoesNotFitTheAxesOrTheTypeIsRefusedByKey) {
  const auto error = [](RunConfig config, const PlannedImage& image) {
    return std::string(MessageOf(Plan::Build(config, {image}).status()));
  };
  RunConfig flat = SmallConfig();
  EXPECT_EQ(error(flat, Volume()),
            "plan: image 0: key 'patch.size': [y, x] of a volume of 70 slices; give three values: "
            "[z, y, x]");
  EXPECT_EQ(error(VolumeConfig(), TwoImages()[0]),
            "plan: image 0: key 'patch.size': 32 slices of an image that has one; give [y, x]");
  RunConfig thin = VolumeConfig();
  thin.patch.z = 1;
  EXPECT_EQ(error(thin, TwoImages()[0]), "");
  for (const Numerics numerics : {Numerics::kCuda, Numerics::kStrict}) {
    RunConfig on_gpus = VolumeConfig();
    on_gpus.numerics = numerics;
    EXPECT_EQ(error(on_gpus, Volume()), "");
    on_gpus.augment = Json::parse(R"([{"flip": {"axes": ["z"]}}, {"gamma": {}}])");
    EXPECT_EQ(error(on_gpus, Volume()), "") << "a chain of volumes";
    flat.numerics = numerics;
    EXPECT_EQ(error(flat, {Sha256Of("a"), "zarr", Flat(250, 120), 1, DType::kUint16}), "");
  }
  RunConfig fill = VolumeConfig();
  fill.fill = -32769;
  EXPECT_EQ(error(fill, Volume()),
            "plan: key 'patch.fill': -32769 is not a value of int16 (-32768 to 32767)");
  fill.fill = 0.5;
  EXPECT_EQ(error(fill, Volume()),
            "plan: key 'patch.fill': 0.5 is not a value of int16 (-32768 to 32767)");
  const PlannedImage other{Sha256Of("b"), "zarr", {70, 200, 64}, 1, DType::kFloat32};
  EXPECT_THAT(std::string(MessageOf(Plan::Build(VolumeConfig(), {Volume(), other}).status())),
              testing::HasSubstr("1 channel of float32, but image 0 has 1 of int16"));
}

TEST(Plan, TheDefaultFillIsThatOfTheImages) {
  const auto fill = [](const RunConfig& config, DType dtype) {
    return Plan::Build(config, {{Sha256Of("v"), "zarr",
                                 config.has_depth ? Extent{70, 200, 64} : Flat(200, 64), 1, dtype}})
        ->fill();
  };
  EXPECT_EQ(fill(SmallConfig(), DType::kUint8), 255);
  EXPECT_EQ(fill(SmallConfig(), DType::kUint16), 255);
  EXPECT_EQ(fill(VolumeConfig(), DType::kInt16), -1024);
  EXPECT_EQ(fill(VolumeConfig(), DType::kFloat32), -1024);
  EXPECT_EQ(fill(VolumeConfig(), DType::kUint16), 0);
}

TEST(Plan, EveryPatchComesOnceAnEpochAndEpochsDiffer) {
  const Plan plan = Built(SmallConfig());
  std::vector<std::vector<std::string>> orders;
  for (std::uint32_t epoch = 0; epoch < 3; ++epoch) {
    std::set<std::string> seen;
    std::vector<std::string> order;
    for (std::uint64_t i = 0; i < plan.patches_per_epoch(); ++i) {
      const auto spec = plan.DeriveSpec(epoch, i);
      ASSERT_TRUE(spec.ok());
      EXPECT_EQ(spec->key.epoch, epoch);
      EXPECT_EQ(spec->key.ordinal, i);
      EXPECT_EQ(spec->key.seed, 7678u);
      order.push_back(StrCat(spec->image, spec->box.ToString()));
      seen.insert(order.back());
    }
    EXPECT_EQ(seen.size(), 10u);
    orders.push_back(order);
  }
  EXPECT_NE(orders[0], orders[1]);
  EXPECT_NE(orders[1], orders[2]);
}

TEST(Plan, TextIsCanonicalNamesNoPathAndIgnoresPrefetchAndPorts) {
  const Plan plan = Built(SmallConfig());
  EXPECT_EQ(plan.Text().find("secret"), std::string::npos);
  EXPECT_EQ(plan.Text().find("prefetch"), std::string::npos);
  EXPECT_EQ(plan.digest(), Sha256Of(plan.Text()));
  RunConfig other = SmallConfig();
  other.prefetch = 9;
  other.data_ports = "7800-7899";
  other.dataset = {"elsewhere"};
  EXPECT_EQ(Built(other).digest(), plan.digest());
  other.seed = 1;
  EXPECT_NE(Built(other).digest(), plan.digest());
}

TEST(Plan, ItsDigestAndSpecsNeverChange) {
  // These values are a promise: a stream recorded by one build is the same stream in the next.
  const Plan plan = Built(SmallConfig());
  EXPECT_EQ(plan.digest().Hex(),
            "e0112beb354025ffb0f74190fadb04aeaf2cf34595840a75a2b3ba2f6a7c29ad");
  std::string order;
  for (std::uint64_t i = 0; i < 10; ++i) {
    const auto spec = plan.DeriveSpec(3, i);
    order += StrCat(spec->image, ":", spec->box.y, ",", spec->box.x, " ");
  }
  EXPECT_EQ(order,
            "0:200,100 0:100,0 0:100,50 0:200,0 0:200,50 0:0,0 0:0,50 0:0,100 0:100,100 1:0,0 ");
  RunConfig random = SmallConfig();
  random.positions = Positions::kRandom;
  const auto spec = Built(random).DeriveSpec(1, 4);
  EXPECT_EQ(StrCat(spec->image, spec->box.ToString()), "0[z 0+1, y 75+100, x 41+50]");
}

TEST(Plan, ComesBackFromItsText) {
  for (const Positions positions : {Positions::kGrid, Positions::kRandom}) {
    RunConfig config = SmallConfig();
    config.positions = positions;
    config.augment = Json::array({Json{{"flip", {{"horizontal", 0.5}, {"vertical", 0.5}}}}});
    const Plan plan = Built(config);
    const auto again = ParsePlan(plan.Text());
    ASSERT_TRUE(again.ok()) << again.status();
    EXPECT_EQ(again->digest(), plan.digest());
    EXPECT_EQ(again->images(), plan.images());
    EXPECT_EQ(again->DeriveSpec(5, 7)->box, plan.DeriveSpec(5, 7)->box);
  }
}

TEST(Plan, TheLabelsOfAColumnArePartOfItsTextAndDigest) {
  RunConfig config = SmallConfig();
  config.labels.column = "isup";
  std::vector<PlannedImage> images = TwoImages();
  EXPECT_NE(std::string(MessageOf(Plan::Build(config, images).status()))
                .find("key 'labels.label.column'"),
            std::string::npos);
  images[0].label = 3;
  images[1].label = -1;
  const auto plan = Plan::Build(config, images);
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_NE(plan->Text().find(R"("labels":{"values":[3,-1]})"), std::string::npos) << plan->Text();
  ASSERT_EQ(plan->layout().arrays.size(), 2u);
  EXPECT_EQ(plan->layout().arrays[1].name, "label");
  EXPECT_EQ(plan->layout().arrays[1].PatchBytes(), 8u);
  const auto again = ParsePlan(plan->Text());
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_EQ(again->images(), plan->images());
  images[1].label = 4;
  EXPECT_NE(Plan::Build(config, images)->digest(), plan->digest());
  config.labels.column.clear();
  EXPECT_EQ(Plan::Build(config, images)->digest(), Built(config).digest());
  for (const char* wrong : {"[3]", "[3,\"4\"]", "7"}) {
    std::string text = plan->Text();
    const std::string values = "[3,-1]";
    text.replace(text.find(values), values.size(), wrong);
    EXPECT_EQ(ParsePlan(text).status().code(), absl::StatusCode::kInvalidArgument) << wrong;
  }
}

TEST(Plan, ThePartOfASlideIsInItsTextWhereOneIsChosen) {
  const RunConfig config = SmallConfig();
  std::vector<PlannedImage> images = TwoImages();
  images[1].choice = {1.5, "DAPI"};
  const auto plan = Plan::Build(config, images);
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_NE(plan->Text().find(R"("choices":[{},{"focal_plane":1.5,"optical_path":"DAPI"}])"),
            std::string::npos)
      << plan->Text();
  const auto again = ParsePlan(plan->Text());
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_EQ(again->images(), plan->images());
  images[1].choice.focal_plane = 3;
  EXPECT_NE(Plan::Build(config, images)->digest(), plan->digest());
  images[1].choice = {};
  EXPECT_EQ(Plan::Build(config, images)->digest(), Built(config).digest());
  EXPECT_EQ(Built(config).Text().find("choices"), std::string::npos);
  for (const char* wrong : {R"([{}])", R"([{},{"focal_plane":1e9}])", R"([{},"DAPI"])"}) {
    std::string text = plan->Text();
    const std::string values = R"([{},{"focal_plane":1.5,"optical_path":"DAPI"}])";
    text.replace(text.find(values), values.size(), wrong);
    EXPECT_EQ(ParsePlan(text).status().code(), absl::StatusCode::kInvalidArgument) << wrong;
  }
}

TEST(Plan, KeysAtTheirDefaultAreNotInItsText) {
  const std::string text = Built(SmallConfig()).Text();
  EXPECT_EQ(text.find("\"fill\""), std::string::npos) << text;
  EXPECT_EQ(text.find("\"order\""), std::string::npos) << text;
  EXPECT_EQ(text.find("\"augment\""), std::string::npos) << text;
  RunConfig config = SmallConfig();
  config.fill = 0;
  config.augment = Json::array(
      {Json{{"flip", {{"axes", Json::array()}, {"horizontal", 0.5}, {"vertical", 0.25}}}}});
  const Plan plan = Built(config);
  EXPECT_NE(plan.Text().find("\"fill\":0"), std::string::npos) << plan.Text();
  EXPECT_NE(plan.Text().find(R"({"flip":{"vertical":0.25}})"), std::string::npos) << plan.Text();
  const auto again = ParsePlan(plan.Text());
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_EQ(again->config().augment, config.augment);
}

TEST(Plan, OfOtherCodeIsRefusedNamingTheVersions) {
  std::string text = Built(SmallConfig()).Text();
  const std::string own = StrCat("\"ops\":", kOpsVersion);
  text.replace(text.find(own), own.size(), "\"ops\":99");
  const Status status = ParsePlan(text).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_NE(status.message().find("\"ops\":99"), std::string_view::npos) << status;
  EXPECT_NE(status.message().find(StrCat(", this program knows ", ByteVersionsText(), "; run the")),
            std::string_view::npos)
      << status;
  text = Built(SmallConfig()).Text();
  text.replace(text.find("\"version\":2"), 11, "\"version\":3");
  EXPECT_EQ(MessageOf(ParsePlan(text).status()),
            "plan: version 3, this program knows 2; run the same release of Patchbay on every node "
            "and in every program");
}

TEST(Plan, NeedsASettledBatch) {
  RunConfig config = SmallConfig();
  config.global_size = 0;
  config.per_rank = 3;
  EXPECT_FALSE(Plan::Build(config, {{Sha256Of("a"), "zarr", Flat(64, 64), 3, DType::kUint8}}).ok());
  ASSERT_TRUE(SettleBatch(config, 0, 4).ok());
  EXPECT_EQ(config.global_size, 12u);
  ASSERT_TRUE(SettleBatch(config, 0, 8).ok());
  EXPECT_EQ(config.global_size, 12u) << "once";
  config.per_rank = 3;
  ASSERT_TRUE(SettleBatch(config, 12, 2).ok());
  EXPECT_EQ(config.global_size, 12u) << "a resumed run keeps it";
  config.per_rank = kMaxGlobalBatch;
  EXPECT_FALSE(SettleBatch(config, 0, 2).ok());
}

TEST(Plan, RefusesTextThatIsNotExactlyAPlan) {
  const std::string text = Built(SmallConfig()).Text();
  const auto refused = [](std::string altered) {
    const auto plan = ParsePlan(altered);
    return plan.status().code() == absl::StatusCode::kInvalidArgument;
  };
  const auto with = [&](std::string_view from, std::string_view to) {
    std::string altered = text;
    const auto at = altered.find(from);
    EXPECT_NE(at, std::string::npos) << from;
    return altered.replace(at, from.size(), to);
  };
  EXPECT_TRUE(refused(""));
  EXPECT_TRUE(refused("{}"));
  EXPECT_TRUE(refused("[]"));
  EXPECT_TRUE(refused(text + " "));
  EXPECT_TRUE(refused(with("\"version\":2", "\"version\":1")));
  EXPECT_TRUE(refused(with("\"channels\":3", "\"channels\":0")));
  EXPECT_TRUE(refused(with("\"channels\":3", "\"channels\":4000000000")));
  EXPECT_TRUE(refused(with("250,120", "-250,120")));
  EXPECT_TRUE(refused(with("250,120", "9223372036854775807,120")));
  EXPECT_TRUE(refused(with("250,120", "250,120,1")));
  EXPECT_TRUE(refused(with("\"seed\":7678", "\"seed\":-1")));
  EXPECT_TRUE(refused(with("\"size\":[100,50]", "\"size\":[0,50]")));
  EXPECT_TRUE(refused(with("\"numerics\":\"cpu\",", "")));
  for (std::size_t cut = 0; cut < text.size(); cut += 7) EXPECT_TRUE(refused(text.substr(0, cut)));
}

TEST(Plan, RefusesImagesThatDoNotBelongTogether) {
  const RunConfig config = SmallConfig();
  const auto code = [&](std::vector<PlannedImage> images) {
    return Plan::Build(config, std::move(images)).status().code();
  };
  EXPECT_EQ(code({}), absl::StatusCode::kInvalidArgument);
  auto images = TwoImages();
  images[1].channels = 1;
  EXPECT_EQ(code(images), absl::StatusCode::kInvalidArgument);
  images = TwoImages();
  images[1].dtype = DType::kUint16;
  EXPECT_EQ(code(images), absl::StatusCode::kInvalidArgument);
  images = TwoImages();
  images[0].size.x = 0;
  EXPECT_EQ(code(images), absl::StatusCode::kInvalidArgument);
  RunConfig undecided = config;
  undecided.numerics.reset();
  EXPECT_FALSE(Plan::Build(undecided, TwoImages()).ok());
}

TEST(Plan, GeometryIsFixedByThePlanAndTheRanks) {
  RunConfig config = SmallConfig();
  config.global_size = 32;
  const Plan plan = Built(config);
  const auto one = plan.Geometry(1);
  ASSERT_TRUE(one.ok());
  EXPECT_EQ(one->patches_per_epoch, 10u);
  EXPECT_EQ(one->shard_patches, 4u);
  EXPECT_EQ(plan.layout().PatchBytes(), 100u * 50 * 3 * 2);
  EXPECT_EQ(plan.Geometry(4)->shard_patches, 1u);
  EXPECT_FALSE(plan.Geometry(0).ok());
  EXPECT_FALSE(plan.Geometry(33).ok());
  config.patch.y = config.patch.x = 16'384;
  config.global_size = 100;
  EXPECT_EQ(Built(config).Geometry(1)->shard_patches, 1u);
}

TEST(Plan, ItsLayoutIsTheImageAndWhatTheConfigAsksFor) {
  RunConfig config = SmallConfig();
  const Plan plain = Built(config);
  ASSERT_EQ(plain.layout().arrays.size(), 1u);
  EXPECT_EQ(plain.layout().arrays[0].name, "image");
  EXPECT_EQ(plain.layout().arrays[0].shape, (std::vector<std::int64_t>{3, 100, 50}));
  config.layout = PatchLayout::kNhwc;
  config.meta = true;
  const Plan plan = Built(config);
  std::vector<std::string> names;
  for (const ArrayLayout& array : plan.layout().arrays) names.push_back(array.name);
  EXPECT_EQ(names, (std::vector<std::string>{"image", "ordinal", "image_index", "level", "box"}));
  EXPECT_EQ(plan.layout().arrays[0].shape, (std::vector<std::int64_t>{100, 50, 3}));
  EXPECT_EQ(*LayoutOfPlan(plan.Text()), plan.layout()) << "a trainer reads it from the text";
  EXPECT_NE(plan.digest(), plain.digest());
  EXPECT_TRUE(ParsePlan(plan.Text()).ok());
  config.order = PatchOrder::kSequential;
  const ArrayLayout last = Built(config).layout().arrays.back();
  EXPECT_EQ(last, (ArrayLayout{"last_of_image", DType::kUint8, {}, ArrayMemory::kHost}));
}

TEST(Plan, WhatCannotBeStreamedIsRefusedByKeyAndLimit) {
  const auto error = [](const RunConfig& config, std::uint32_t ranks = 1) {
    return std::string(MessageOf(Built(config).Geometry(ranks).status()));
  };
  RunConfig config = SmallConfig();
  EXPECT_EQ(error(config, 8), "");
  config.tail = Tail::kDrop;
  config.global_size = 10;
  EXPECT_EQ(error(config), "");
  config.global_size = 11;
  EXPECT_EQ(error(config),
            "plan stream: key 'batch.global_size': an epoch has 10 patches, a batch 11: with tail: "
            "drop an epoch has no batch");
  config.tail = Tail::kKeep;
  EXPECT_EQ(error(config, 10), "");
  EXPECT_EQ(error(config, 11),
            "plan stream: key 'batch.global_size': an epoch has 10 patches, fewer than 11 ranks");
  config.patch.y = config.patch.x = 16'384;
  config.global_size = 1000;
  EXPECT_EQ(
      error(config),
      "plan stream: key 'batch.global_size': 1000 patches of 1.5 GiB make a slot of more than "
      "256.0 GiB, the most there may be");
}

TEST(Plan, ARingBeyondItsLimitIsRefusedByKeyAndLimit) {
  RunConfig config = SmallConfig();
  const auto ring_bytes = [&](std::uint32_t prefetch) {
    const Plan plan = Built(config);
    return RingBytes(plan.layout(), *plan.Geometry(1), prefetch);
  };
  EXPECT_EQ(*ring_bytes(2), 5u * 59 * 4096) << "slots of 8 * 100 * 50 * 3 * 2 bytes, on pages";
  config.patch.y = config.patch.x = 16'384;
  config.tail = Tail::kPad;
  config.global_size = 64;  // 96 GiB a slot
  EXPECT_TRUE(ring_bytes(7).ok());
  EXPECT_EQ(MessageOf(ring_bytes(64).status()),
            "plan stream: key 'batch.prefetch': 67 slots (prefetch 64 and 3 more) of 96.0 GiB make "
            "a ring of more than 1.0 TiB, the most there may be");
}

TEST(Plan, ItsLimitsFitThoseOfARingAndOfAScheduler) {
  EXPECT_EQ(kMaxRingBytes, memory::kMaxBlockBytes);
  EXPECT_LE(kMaxSlotBytes / (kMaxShardBytes / 2), kMaxShardsPerSlot)
      << "a slot that is small enough never has too many shards";
}

TEST(Plan, TheTailIsPaddedWrappedOrRefused) {
  RunConfig config = SmallConfig();
  config.tail = Tail::kPad;
  const Plan padded = Built(config);
  EXPECT_FALSE(padded.DeriveSpec(0, 9)->pad);
  EXPECT_TRUE(padded.DeriveSpec(0, 10)->pad);
  EXPECT_TRUE(padded.DeriveSpec(0, 15)->pad);
  EXPECT_FALSE(padded.DeriveSpec(0, 18).ok());
  config.tail = Tail::kWrap;
  const Plan wrapped = Built(config);
  const auto spec = wrapped.DeriveSpec(2, 11), first = wrapped.DeriveSpec(2, 1);
  EXPECT_EQ(spec->box, first->box);
  EXPECT_EQ(spec->key.ordinal, first->key.ordinal);
  config.tail = Tail::kKeep;
  EXPECT_FALSE(Built(config).DeriveSpec(0, 10).ok());
  EXPECT_FALSE(Built(config).DeriveSpec(0, UINT64_MAX).ok());
  EXPECT_FALSE(Built(config).DeriveSpec(kMaxEpoch + 1, 0).ok());
}

TEST(Plan, RandomPlacesLieInsideAndReachEveryCorner) {
  RunConfig config = SmallConfig();
  config.positions = Positions::kRandom;
  config.patches_per_image = 20'000;
  const Plan plan = Built(config);
  EXPECT_EQ(plan.patches_per_epoch(), 40'000u);
  std::set<std::int64_t> ys, xs;
  double sum = 0;
  int count = 0;
  for (std::uint64_t i = 0; i < plan.patches_per_epoch(); ++i) {
    const PatchSpec spec = *plan.DeriveSpec(0, i);
    if (spec.image == 1) {  // narrower than the patch: one place
      EXPECT_EQ(spec.box, Box2D(0, 0, 100, 50));
      continue;
    }
    ys.insert(spec.box.y);
    xs.insert(spec.box.x);
    sum += static_cast<double>(spec.box.y);
    ++count;
  }
  EXPECT_EQ(count, 20'000);
  EXPECT_EQ(ys.size(), 151u);
  EXPECT_EQ(xs.size(), 71u);
  EXPECT_EQ(*ys.rbegin(), 150);
  EXPECT_EQ(*xs.rbegin(), 70);
  EXPECT_NEAR(sum / count, 75.0, 1.5);  // five standard errors of the mean
}

TEST(Plan, AnEpochOfFixedLengthIsSharedOutByGrid) {
  RunConfig config = SmallConfig();
  config.positions = Positions::kRandom;
  config.patches_per_epoch = 1000;
  EXPECT_EQ(Built(config).cumulative_patches(), (std::vector<std::uint64_t>{0, 900, 1000}));
  config.patches_per_epoch = 1;
  EXPECT_EQ(Built(config).patches_per_epoch(), 1u);
}

TEST(Permutation, IsABijectionForEverySmallRange) {
  for (std::uint64_t n = 1; n < 300; ++n) {
    std::set<std::uint64_t> seen;
    for (std::uint64_t i = 0; i < n; ++i) {
      const std::uint64_t place = Permute({42, 1}, n, i);
      ASSERT_LT(place, n);
      seen.insert(place);
    }
    ASSERT_EQ(seen.size(), n) << "n = " << n;
  }
}

/// Positions in resume tokens mean places of this order: it never changes.
TEST(Permutation, OrdersOfPowersOfTwoAndTheirNeighboursStay) {
  const auto order = [](std::uint64_t n) {
    std::vector<std::uint64_t> places;
    for (std::uint64_t i = 0; i < n; ++i) places.push_back(Permute({42, 1}, n, i));
    return places;
  };
  using Places = std::vector<std::uint64_t>;
  EXPECT_EQ(order(1), (Places{0}));
  EXPECT_EQ(order(7), (Places{5, 4, 6, 1, 0, 2, 3}));
  EXPECT_EQ(order(8), (Places{5, 4, 6, 1, 0, 7, 3, 2}));
  EXPECT_EQ(order(9), (Places{7, 5, 2, 1, 6, 4, 3, 8, 0}));
}

TEST(Permutation, IsABijectionOfAMillionWithoutATable) {
  constexpr std::uint64_t kN = 1'000'003;
  std::vector<bool> seen(kN);
  for (std::uint64_t i = 0; i < kN; ++i) {
    const std::uint64_t place = Permute({7, 2}, kN, i);
    ASSERT_FALSE(seen[place]);
    seen[place] = true;
  }
}

TEST(Permutation, StaysInRangeForTheLargestEpochs) {
  for (const std::uint64_t n : {std::uint64_t{1'000'000'000}, kMaxPatchesPerEpoch}) {
    for (std::uint64_t i = 0; i < 1000; ++i) {
      ASSERT_LT(Permute({1, 0}, n, i), n);
      ASSERT_LT(Permute({1, 0}, n, n - 1 - i), n);
    }
  }
}

/// Chi-squared of where each i lands over many keys; the bound is five standard deviations above
/// the mean of the distribution.
TEST(Permutation, EveryPlaceIsEquallyLikelyOverSeedsAndEpochs) {
  constexpr std::uint64_t kN = 24;
  constexpr int kKeys = 24'000;
  std::array<std::array<int, kN>, kN> landed{};
  for (int key = 0; key < kKeys; ++key) {
    const PermutationKey k{static_cast<std::uint64_t>(key / 4),
                           static_cast<std::uint32_t>(key % 4)};
    for (std::uint64_t i = 0; i < kN; ++i) ++landed[i][Permute(k, kN, i)];
  }
  const double expected = static_cast<double>(kKeys) / kN;
  double chi = 0;
  for (const auto& row : landed) {
    for (const int n : row) chi += (n - expected) * (n - expected) / expected;
  }
  const double freedom = (kN - 1) * (kN - 1);
  EXPECT_LT(chi, freedom + 5 * std::sqrt(2 * freedom));
}

TEST(Permutation, NeighboursDoNotStayTogether) {
  constexpr std::uint64_t kN = 100'000;
  double product = 0;
  for (std::uint64_t i = 0; i + 1 < kN; ++i) {
    const double a = static_cast<double>(Permute({5, 9}, kN, i)) / kN - 0.5;
    const double b = static_cast<double>(Permute({5, 9}, kN, i + 1)) / kN - 0.5;
    product += a * b;
  }
  // Correlation of successive places; 5 / sqrt(n) is five standard errors.
  EXPECT_LT(std::abs(product / kN * 12.0), 5.0 / std::sqrt(static_cast<double>(kN)));
}

}  // namespace
}  // namespace patchbay::plan
