// A histogram of values as a store carries it.
#include "runtime/model/plan/value_histogram.h"

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

ValueHistogram Of(const std::vector<std::int16_t>& values) {
  ValueHistogram histogram;
  for (const std::int16_t value : values) histogram.Add(value);
  return histogram;
}

TEST(ValueHistogram, CountsComeBackFromItsText) {
  HuHistogram counts;
  for (const std::int16_t value : Voxels(1)) ++counts[value];
  EXPECT_EQ(Of(Voxels(1)).Counts(), counts);
  EXPECT_EQ(ValueHistogram::FromJson(Of(Voxels(1)).ToJson())->Counts(), counts);
  EXPECT_TRUE(ValueHistogram::FromJson(ValueHistogram().ToJson())->Counts().empty());
}

TEST(ValueHistogram, WhatItDoesNotWriteIsRefused) {
  const Json good = Of(Voxels(1)).ToJson();
  const auto refused = [&good](auto change) {
    Json wrong = good;
    change(wrong);
    return ValueHistogram::FromJson(wrong).status().code() == absl::StatusCode::kInvalidArgument;
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
