// The order of ops and their draws: fixed, whatever the order of the lists.
#include "runtime/model/ops/op_list.h"

#include <set>
#include <utility>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "runtime/core/hash.h"
#include "runtime/model/plan/plan.h"
#include "tests/contract/known_ops.h"

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

std::string OpsRefusal(std::string_view preprocess, std::string_view augment,
                       std::int64_t width = 8) {
  return std::string(CheckOps(Steps(preprocess), Steps(augment), Flat(8, width)).message());
}

Plan PlanOfOps(const std::string& ops) {
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
      PlanOfOps("preprocess: [normalize, {cast: {dtype: uint8}}], augment: [flip, rotate90]");
  const Plan other =
      PlanOfOps("preprocess: [{cast: {dtype: uint8}}, normalize], augment: [rotate90, flip]");
  EXPECT_EQ(one.digest(), other.digest());
  EXPECT_TRUE(ParsePlan(other.Text()).ok());
  // Two uses of one op are two ops: their order is the user's.
  EXPECT_NE(PlanOfOps("augment: [{flip: {vertical: 0}}, flip]").digest(),
            PlanOfOps("augment: [flip, {flip: {vertical: 0}}]").digest());
}

TEST(OpList, NoTwoOpsAndNoTwoUsesDrawTheSameNumbers) {
  std::set<std::uint32_t> seen;
  for (const OpRow& op : ops::Table().rows()) {
    for (std::uint32_t use = 0; use < kMaxOps; ++use) {
      const std::uint32_t occurrence = Occurrence(op.number, use);
      EXPECT_TRUE(seen.insert(occurrence).second) << op.name();
      EXPECT_LT(occurrence, 1u << 12) << "DrawKey has 12 bits for it";
    }
  }
}

/// Golden: a number that moves changes the bytes of every stream that uses the op.
TEST(OpList, NumbersOfOpsNeverChange) {
  EXPECT_EQ(Occurrence(OpNumber{2}, 1), 129u);
  EXPECT_EQ(Occurrence(OpNumber{5}, 63), 383u);
  const std::pair<const char*, std::uint32_t> kNumbers[] = {{"crop", 1},
                                                            {"flip", 2},
                                                            {"rotate90", 3},
                                                            {"normalize", 4},
                                                            {"cast", 5},
                                                            {"affine", 6},
                                                            {"elastic", 7},
                                                            {"icc_to_srgb", 8},
                                                            {"stain_normalize", 9},
                                                            {"stain_jitter", 10},
                                                            {"hed_jitter", 11},
                                                            {"color_jitter", 12},
                                                            {"gaussian_blur", 13},
                                                            {"gaussian_noise", 14},
                                                            {"window", 15},
                                                            {"ct_normalize", 16},
                                                            {"zscore", 17},
                                                            {"brightness", 18},
                                                            {"contrast", 19},
                                                            {"low_resolution", 20},
                                                            {"gamma", 21},
                                                            {"posterize", 22},
                                                            {"percentile", 23}};
  for (const auto& [name, number] : kNumbers) {
    const OpRow* op = ops::Table().Find(name);
    ASSERT_NE(op, nullptr) << name;
    EXPECT_EQ(Occurrence(op->number, 0), 64 * number) << name;
  }
}

TEST(OpList, WhatIsWrongForEveryImageIsSaidBeforeOneIsOpen) {
  EXPECT_EQ(OpsRefusal(R"([{"normalize":{"mean":[0,0],"std":[1,1]}}])", "[]"), "")
      << "two channels are possible";
  EXPECT_EQ(OpsRefusal(R"([{"normalize":{"mean":[0,0],"std":[1,1]}}])",
                       R"([{"normalize":{"std":[1,1,1]}}])"),
            "check ops: key 'preprocess[0].normalize': 2 means and 2 stds for 3 channels: expected "
            "1 or 3 of each");
  EXPECT_EQ(OpsRefusal("[]", R"([{"flip":{}},{"rotate90":{}}])", 9),
            "check ops: key 'augment[1].rotate90': needs a square patch, got 8 x 9");
  EXPECT_EQ(OpsRefusal("[]", R"([{"flap":{}}])"), "check ops: key 'augment[0].flap': unknown op");
  EXPECT_THAT(OpsRefusal("[]", R"([{"elastic":{"amplitude":2}}])"),
              testing::HasSubstr("key 'augment[0].elastic': amplitude 2 px folds the patch"));
  EXPECT_THAT(OpsRefusal("[]", "[3]"), testing::HasSubstr("expected one op name with its options"));
  EXPECT_THAT(OpsRefusal("3", "[]"), testing::HasSubstr("two lists of at most 64 ops"));
  Json many = Json::array();
  for (std::size_t i = 0; i <= kMaxOps; ++i) many.push_back({{"flip", Json::object()}});
  EXPECT_FALSE(SortOps(many, Json::array()).ok());
}

}  // namespace
}  // namespace patchbay::plan
