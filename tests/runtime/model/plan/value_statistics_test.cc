#include "runtime/model/plan/value_statistics.h"

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "ops/all_ops.h"
#include "runtime/core/random.h"
#include "runtime/model/plan/run_lock.h"

namespace patchbay::plan {
namespace {

/// The linear rule on the voxels themselves.
double PercentileOf(const std::vector<double>& sorted, double part) {
  const double at = part * static_cast<double>(sorted.size() - 1);
  const auto below = static_cast<std::size_t>(at);
  const double above = sorted[std::min(below + 1, sorted.size() - 1)];
  return sorted[below] + (above - sorted[below]) * (at - static_cast<double>(below));
}

TEST(ValueStatistics, AreThoseOfTheVoxelsOneByOne) {
  for (const std::size_t voxels : {1, 2, 7, 999, 20'000}) {
    for (const bool has_window : {false, true}) {
      const auto window = has_window ? std::optional(ValueWindow{-20, 30}) : std::nullopt;
      HuHistogram counts;
      std::vector<double> values;
      for (std::size_t i = 0; i < voxels; ++i) {
        const PhiloxBlock block = Draw(DrawKey{.seed = 5, .ordinal = i}, 0);
        const auto hu = static_cast<std::int16_t>(static_cast<int>(block.word[0] % 90) - 45);
        ++counts[hu];
        values.push_back(Windowed(hu, window));
      }
      std::sort(values.begin(), values.end());
      double mean = 0, square = 0;
      for (const double value : values) mean += value / static_cast<double>(voxels);
      for (const double value : values) square += (value - mean) * (value - mean);
      const auto found = StatisticsOf(counts, window);
      ASSERT_TRUE(found);
      EXPECT_EQ(found->voxels, voxels);
      EXPECT_DOUBLE_EQ(found->lower, PercentileOf(values, 0.005));
      EXPECT_DOUBLE_EQ(found->upper, PercentileOf(values, 0.995));
      // Sums of up to 20,000 doubles in another order.
      EXPECT_NEAR(found->mean, mean, 1e-11);
      EXPECT_NEAR(found->std, std::sqrt(square / static_cast<double>(voxels)), 1e-11);
    }
  }
  EXPECT_FALSE(StatisticsOf({}, std::nullopt));
}

TEST(ValueStatistics, OfFloatsAreThoseOfTheVoxelsOneByOne) {
  for (const std::size_t voxels : {1, 2, 999, 20'000}) {
    std::vector<float> values;
    std::vector<double> sorted;
    Moments parts, nonzero;
    for (std::size_t i = 0; i < voxels; ++i) {
      const PhiloxBlock block = Draw(DrawKey{.seed = 6, .ordinal = i}, 0);
      const float value = block.word[0] % 3 == 0 ? 0.0f : static_cast<float>(block.word[1]) * 1e-6f;
      values.push_back(value);
      sorted.push_back(static_cast<double>(value));
      parts.Merge(Moments::Of({&value, 1}));
      if (value != 0) nonzero.Merge(Moments::Of({&value, 1}));
    }
    std::sort(sorted.begin(), sorted.end());
    std::sort(values.begin(), values.end());
    const FloatStatistics found = FloatStatistics::Of(values);
    for (const double percent : {0.0, 0.1, 0.5, 50.0, 99.5, 100.0}) {
      // Stored as float32.
      EXPECT_FLOAT_EQ(static_cast<float>(*found.Percentile(percent)),
                      static_cast<float>(PercentileOf(sorted, percent / 100)));
    }
    EXPECT_EQ(found.nonzero.voxels, nonzero.voxels);
    for (const auto& [own, other] : {std::pair{found.image, parts}, {found.nonzero, nonzero}}) {
      // Sums of up to 20,000 doubles in another order, of values up to 4300.
      EXPECT_NEAR(own.mean, other.mean, 1e-8);
      EXPECT_NEAR(own.std, other.std, 1e-8);
    }
    EXPECT_FALSE(found.Percentile(99.55).ok());
  }
  EXPECT_EQ(FloatStatistics::Of({}).image.voxels, 0u);
}

TEST(CtNormalize, WaitsForAllOfItsNumbersOrNone) {
  OpLists config{.ops = &ops::Table()};
  config.preprocess = {{{"window", {{"range", {0, 1}}}}}, {{"ct_normalize", Json::object()}}};
  const auto awaiting = [&config] { return config.Find(AwaitsStatistic).key; };
  EXPECT_EQ(awaiting(), "preprocess[1].ct_normalize");
  std::swap(config.preprocess, config.augment);
  EXPECT_EQ(awaiting(), "augment[1].ct_normalize");
  std::swap(config.preprocess, config.augment);
  const Json numbers = {{"lower", -1}, {"upper", 2}, {"mean", 0.5}, {"std", 3}, {"voxels", 9}};
  const auto settle = [&config](const Json& found) {
    return SettleStatistics({{std::string(kCtForeground), found}}, config);
  };
  for (const char* missing : {"lower", "upper", "mean", "std"}) {
    Json some = numbers;
    some.erase(missing);
    EXPECT_FALSE(settle(some).ok()) << missing;
  }
  EXPECT_EQ(awaiting(), "preprocess[1].ct_normalize");
  ASSERT_TRUE(settle(numbers).ok());
  EXPECT_EQ(awaiting(), "");
  EXPECT_EQ(config.preprocess[1]["ct_normalize"].size(), 4u);
  EXPECT_EQ(config.preprocess[1]["ct_normalize"]["upper"], 2);
  const Json given = config.preprocess;
  ASSERT_TRUE(settle({{"lower", 0}, {"upper", 1}, {"mean", 0}, {"std", 1}}).ok());
  EXPECT_EQ(config.preprocess, given);
}

}  // namespace
}  // namespace patchbay::plan
