// The order of ops and their draws: fixed, whatever the order of the lists.
#include "runtime/model/ops/op_list.h"

#include <set>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "runtime/core/hash.h"
#include "runtime/model/plan/plan.h"

namespace patchbay::plan {
namespace {

Json Steps(std::string_view text) { return *ParseJson(text, "steps"); }

/// "crop/0 flip/1": names of keys and uses in the order of application.
std::string Ordered(std::string_view preprocess, std::string_view augment) {
  const auto steps = SortOps(Steps(preprocess), Steps(augment));
  EXPECT_TRUE(steps.ok()) << steps.status();
  std::string text;
  for (const OpStep& step : *steps) text += step.key + "/" + std::to_string(step.use) + " ";
  return text;
}

std::string Refusal(std::string_view preprocess, std::string_view augment, std::int64_t width = 8) {
  return std::string(CheckOps(Steps(preprocess), Steps(augment), Flat(8, width)).message());
}

Plan PlanOf(const std::string& ops) {
  const auto config = ParseRunConfig(
      "{dataset: a, numerics: cpu, patch: {size: [8, 8]}, batch: {global_size: 2}, " + ops + "}",
      "test");
  EXPECT_TRUE(config.ok()) << config.status();
  auto plan = Plan::Build(*config, {{Sha256Of("a"), "zarr", Flat(64, 64), 3, DType::kUint8}});
  EXPECT_TRUE(plan.ok()) << plan.status();
  return *std::move(plan);
}

TEST(OpList, OrderIsFixedAndUsesOfOneOpKeepTheirs) {
  EXPECT_EQ(Ordered(R"([{"cast":{"dtype":"uint8"}},{"normalize":{}},{"flip":{}}])",
                    R"([{"rotate90":{}},{"flip":{}},{"crop":{"margin":[1,1]}}])"),
            "augment[2].crop/0 preprocess[2].flip/0 augment[1].flip/1 augment[0].rotate90/0 "
            "preprocess[1].normalize/0 preprocess[0].cast/0 ");
}

TEST(OpList, PlansThatNameTheSameOpsInAnotherOrderAreOnePlan) {
  const Plan one =
      PlanOf("preprocess: [normalize, {cast: {dtype: uint8}}], augment: [flip, rotate90]");
  const Plan other =
      PlanOf("preprocess: [{cast: {dtype: uint8}}, normalize], augment: [rotate90, flip]");
  EXPECT_EQ(one.digest(), other.digest());
  EXPECT_TRUE(Plan::Parse(other.Text()).ok());
  // Two uses of one op are two ops: their order is the user's.
  EXPECT_NE(PlanOf("augment: [{flip: {vertical: 0}}, flip]").digest(),
            PlanOf("augment: [flip, {flip: {vertical: 0}}]").digest());
}

TEST(OpList, NoTwoOpsAndNoTwoUsesDrawTheSameNumbers) {
  std::set<std::uint32_t> seen;
  for (const OpNumber op : {OpNumber::kCrop, OpNumber::kFlip, OpNumber::kRotate90,
                            OpNumber::kNormalize, OpNumber::kCast}) {
    for (std::uint32_t use = 0; use < kMaxOps; ++use) {
      const std::uint32_t occurrence = Occurrence({op, use, "", {}});
      EXPECT_TRUE(seen.insert(occurrence).second);
      EXPECT_LT(occurrence, 1u << 12) << "DrawKey has 12 bits for it";
    }
  }
}

/// Golden: a number that moves changes the bytes of every stream that uses the op.
TEST(OpList, NumbersOfOpsNeverChange) {
  EXPECT_EQ(Occurrence({OpNumber::kCrop, 0, "", {}}), 64u);
  EXPECT_EQ(Occurrence({OpNumber::kFlip, 1, "", {}}), 129u);
  EXPECT_EQ(Occurrence({OpNumber::kRotate90, 2, "", {}}), 194u);
  EXPECT_EQ(Occurrence({OpNumber::kNormalize, 0, "", {}}), 256u);
  EXPECT_EQ(Occurrence({OpNumber::kCast, 63, "", {}}), 383u);
  EXPECT_EQ(Occurrence({OpNumber::kAffine, 0, "", {}}), 384u);
  EXPECT_EQ(Occurrence({OpNumber::kElastic, 0, "", {}}), 448u);
  EXPECT_EQ(Occurrence({OpNumber::kStainNormalize, 0, "", {}}), 576u);
  EXPECT_EQ(Occurrence({OpNumber::kStainJitter, 0, "", {}}), 640u);
  EXPECT_EQ(Occurrence({OpNumber::kHedJitter, 0, "", {}}), 704u);
  EXPECT_EQ(Occurrence({OpNumber::kColorJitter, 0, "", {}}), 768u);
  EXPECT_EQ(Occurrence({OpNumber::kGaussianBlur, 0, "", {}}), 832u);
  EXPECT_EQ(Occurrence({OpNumber::kGaussianNoise, 0, "", {}}), 896u);
  EXPECT_EQ(Occurrence({OpNumber::kWindow, 0, "", {}}), 960u);
  EXPECT_EQ(Occurrence({OpNumber::kCtNormalize, 0, "", {}}), 1024u);
  EXPECT_EQ(Occurrence({OpNumber::kZscore, 0, "", {}}), 1088u);
  EXPECT_EQ(Occurrence({OpNumber::kBrightness, 0, "", {}}), 1152u);
  EXPECT_EQ(Occurrence({OpNumber::kContrast, 0, "", {}}), 1216u);
  EXPECT_EQ(Occurrence({OpNumber::kLowResolution, 0, "", {}}), 1280u);
  EXPECT_EQ(Occurrence({OpNumber::kGamma, 0, "", {}}), 1344u);
}

TEST(OpList, WhatIsWrongForEveryImageIsSaidBeforeOneIsOpen) {
  EXPECT_EQ(Refusal(R"([{"normalize":{"mean":[0,0],"std":[1,1]}}])", "[]"), "")
      << "two channels are possible";
  EXPECT_EQ(Refusal(R"([{"normalize":{"mean":[0,0],"std":[1,1]}}])",
                    R"([{"normalize":{"std":[1,1,1]}}])"),
            "check ops: key 'preprocess[0].normalize': 2 means and 2 stds for 3 channels: expected "
            "1 or 3 of each");
  EXPECT_EQ(Refusal("[]", R"([{"flip":{}},{"rotate90":{}}])", 9),
            "check ops: key 'augment[1].rotate90': needs a square patch, got 8 x 9");
  EXPECT_EQ(Refusal("[]", R"([{"flap":{}}])"), "check ops: key 'augment[0].flap': unknown op");
  EXPECT_THAT(Refusal("[]", R"([{"elastic":{"amplitude":2}}])"),
              testing::HasSubstr("key 'augment[0].elastic': amplitude 2 px folds the patch"));
  EXPECT_THAT(Refusal("[]", "[3]"), testing::HasSubstr("not one name with options"));
  EXPECT_THAT(Refusal("3", "[]"), testing::HasSubstr("two lists of at most 64 ops"));
  Json many = Json::array();
  for (std::size_t i = 0; i <= kMaxOps; ++i) many.push_back({{"flip", Json::object()}});
  EXPECT_FALSE(SortOps(many, Json::array()).ok());
}

}  // namespace
}  // namespace patchbay::plan
