// Statistics of a body from its histogram: those of the voxels, for any window, in any order of
// merging.
#include "runtime/model/plan/body_histogram.h"

#include <cmath>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace patchbay::plan {
namespace {

std::vector<std::int16_t> Voxels(std::uint64_t seed) {
  std::vector<std::int16_t> values;
  for (std::uint64_t state = seed, i = 0; i < 5'000; ++i) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    values.push_back(static_cast<std::int16_t>(static_cast<std::int64_t>(state >> 53) - 900));
  }
  values.insert(values.end(), {-32'768, 32'767, -500, -500});
  return values;
}

BodyHistogram Of(const std::vector<std::int16_t>& values) {
  BodyHistogram histogram;
  for (const std::int16_t value : values) histogram.Add(value);
  return histogram;
}

TEST(BodyHistogram, StatisticsAreThoseOfTheVoxels) {
  const auto values = Voxels(3);
  for (const auto& window : {std::optional<ValueWindow>(), std::optional(ValueWindow{-150, 250}),
                             std::optional(ValueWindow{-1000.5, 3000})}) {
    double sum = 0, squares = 0;
    const auto value = [&window](double hu) {
      return window ? std::clamp((hu - window->low) / (window->high - window->low), 0.0, 1.0) : hu;
    };
    for (const std::int16_t hu : values) sum += value(hu);
    const double mean = sum / static_cast<double>(values.size());
    for (const std::int16_t hu : values) squares += std::pow(value(hu) - mean, 2);
    const auto found = Of(values).Statistics(window);
    ASSERT_TRUE(found);
    // Sums of 5000 doubles in another order.
    EXPECT_NEAR(found->mean, mean, 1e-12 * std::abs(mean) + 1e-12);
    EXPECT_NEAR(found->std, std::sqrt(squares / static_cast<double>(values.size())), 1e-9);
  }
  EXPECT_FALSE(BodyHistogram().Statistics(std::nullopt));
}

TEST(BodyHistogram, MergesInAnyOrderAndReadsBackWhatItWrote) {
  BodyHistogram one = Of(Voxels(1)), other = Of(Voxels(2));
  const Json second = other.ToJson();
  other.Merge(one);
  one.Merge(*BodyHistogram::FromJson(second));
  EXPECT_EQ(one.ToJson(), other.ToJson());
  EXPECT_EQ(one.Voxels(), 2 * Voxels(1).size());
  EXPECT_EQ(BodyHistogram::FromJson(one.ToJson())->ToJson(), one.ToJson());
  EXPECT_EQ(BodyHistogram::FromJson(BodyHistogram().ToJson())->Voxels(), 0u);
}

TEST(BodyHistogram, WhatItDoesNotWriteIsRefused) {
  const Json good = Of(Voxels(1)).ToJson();
  const auto refused = [&good](auto change) {
    Json wrong = good;
    change(wrong);
    return BodyHistogram::FromJson(wrong).status().code() == absl::StatusCode::kInvalidArgument;
  };
  EXPECT_FALSE(refused([](Json&) {}));
  EXPECT_TRUE(refused([](Json& j) { j["voxels"] = 3; }));
  EXPECT_TRUE(refused([](Json& j) { j["first"] = 40'000; }));
  EXPECT_TRUE(refused([](Json& j) { j["first"] = 32'767; }));
  EXPECT_TRUE(refused([](Json& j) { j["counts"] = "?"; }));
  EXPECT_TRUE(refused([](Json& j) { j["counts"] = "AAAA"; }));
  EXPECT_TRUE(refused([](Json& j) { j["counts"] = "gA=="; }));
  EXPECT_TRUE(refused([](Json& j) { j.erase("counts"); }));
  EXPECT_TRUE(refused([](Json& j) { j = 3; }));
}

}  // namespace
}  // namespace patchbay::plan
