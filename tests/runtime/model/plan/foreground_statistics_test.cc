#include "runtime/model/plan/foreground_statistics.h"

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

TEST(ForegroundStatistics, AreThoseOfTheVoxelsOneByOne) {
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
