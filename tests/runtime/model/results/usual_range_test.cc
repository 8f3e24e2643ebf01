// The outliers among a cohort's values.
#include "runtime/model/results/usual_range.h"

#include <gtest/gtest.h>

namespace patchbay::results {
namespace {

TEST(UsualRange, OneFarValueIsOutsideAndDoesNotWidenIt) {
  std::vector<double> values;
  for (int i = 0; i < 20; ++i) values.push_back(50 + 0.2 * (i % 5));
  const UsualRange clean = UsualRangeOf(values);
  values.push_back(80);
  const UsualRange range = UsualRangeOf(values);
  EXPECT_NEAR(range.limit, clean.limit, 0.3);
  EXPECT_FALSE(range.Holds(80));
  for (int i = 0; i < 20; ++i) EXPECT_TRUE(range.Holds(values[static_cast<std::size_t>(i)]));
}

TEST(UsualRange, WhatAThirdOfTheSlidesShareIsUsual) {
  std::vector<double> values;
  for (int i = 0; i < 20; ++i) values.push_back(50 + 0.01 * i);
  for (int i = 0; i < 10; ++i) values.push_back(58 + 0.01 * i);
  EXPECT_TRUE(UsualRangeOf(values).Holds(58));
  values.resize(24);  // a sixth
  EXPECT_FALSE(UsualRangeOf(values).Holds(58));
}

TEST(UsualRange, EqualValuesLeaveATenthOfADecibelTimesTheFactor) {
  const UsualRange range = UsualRangeOf(std::vector<double>(7, 42.0));
  EXPECT_EQ(range.median, 42);
  EXPECT_NEAR(range.limit, 0.35, 1e-12);
  EXPECT_TRUE(range.Holds(42.3));
  EXPECT_FALSE(range.Holds(41.6));
}

TEST(UsualRange, OfNothingThereIsNone) { EXPECT_EQ(UsualRangeOf({}).limit, 0); }

TEST(UsualRange, QuantilesLieBetweenNeighbours) {
  std::vector<double> values = {4, 1, 3, 2};
  EXPECT_EQ(QuantileOf(values, 0), 1);
  EXPECT_EQ(QuantileOf(values, 1), 4);
  EXPECT_EQ(QuantileOf(values, 0.5), 2.5);
}

}  // namespace
}  // namespace patchbay::results
