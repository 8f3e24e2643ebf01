// area_average against means in double, and its refusals.
#include "ops/geometry/area_average.h"

#include <algorithm>
#include <cmath>
#include <random>

#include <gtest/gtest.h>

namespace patchbay::ops {
namespace {

/// The part of source pixel `at` in output pixel `i`, as real numbers.
double WeightOf(const AxisMap& map, std::int64_t i, std::int64_t at) {
  const double unit = static_cast<double>(map.unit);
  const double begin = static_cast<double>(map.begin + i * map.step) / unit;
  const double length = static_cast<double>(map.step) / unit;
  if (length >= 1) {
    return std::max(0.0, std::min(begin + length, static_cast<double>(at + 1)) -
                             std::max(begin, static_cast<double>(at))) /
           length;
  }
  return std::max(0.0, 1 - std::abs(begin + length / 2 - (static_cast<double>(at) + 0.5)));
}

template <typename Value>
void ExpectMeans(DType dtype, const AxisMap& y, const AxisMap& x, std::uint32_t seed) {
  constexpr std::int64_t kHeight = 29, kWidth = 37, kChannels = 3, kOutHeight = 9, kOutWidth = 11;
  std::mt19937 random(seed);
  std::vector<Value> source(kHeight * kWidth * kChannels), out(kOutHeight * kOutWidth * kChannels);
  for (Value& value : source)
    value = static_cast<Value>(static_cast<int>(random() % 60'000) -
                               (std::is_signed_v<Value> ? 30'000 : 0));
  const TensorView from = ContiguousView<3>(reinterpret_cast<std::byte*>(source.data()), dtype,
                                            {kHeight, kWidth, kChannels});
  const TensorView to = ContiguousView<3>(reinterpret_cast<std::byte*>(out.data()), dtype,
                                          {kOutHeight, kOutWidth, kChannels});
  AreaAverage average;
  const Status run = average.Run(from, y, x, to);
  ASSERT_TRUE(run.ok()) << run;
  for (std::int64_t i = 0; i < kOutHeight; ++i) {
    for (std::int64_t j = 0; j < kOutWidth; ++j) {
      for (std::int64_t c = 0; c < kChannels; ++c) {
        double sum = 0;
        for (std::int64_t sy = 0; sy < kHeight; ++sy) {
          const double weight = WeightOf(y, i, sy);
          for (std::int64_t sx = 0; weight > 0 && sx < kWidth; ++sx) {
            sum += weight * WeightOf(x, j, sx) *
                   static_cast<double>(
                       source[static_cast<std::size_t>((sy * kWidth + sx) * kChannels + c)]);
          }
        }
        const auto got =
            static_cast<double>(out[static_cast<std::size_t>((i * kOutWidth + j) * kChannels + c)]);
        // Integers are rounded once; sums in double of 60,000 differ by far less than 1e-2.
        EXPECT_NEAR(got, sum, std::is_floating_point_v<Value> ? 1e-2 : 0.5 + 1e-6)
            << i << " " << j << " step " << y.step << "/" << y.unit;
      }
    }
  }
}

TEST(AreaAverage, EveryPixelIsTheMeanOfWhatItCovers) {
  for (const AxisMap& map : {AxisMap{0, 1, 1}, AxisMap{0, 2, 1}, AxisMap{3, 5, 2},
                             AxisMap{7, 1'025, 512}, AxisMap{40, 130, 61}, AxisMap{2, 7, 3}}) {
    ExpectMeans<std::uint8_t>(DType::kUint8, map, map, 1);
    ExpectMeans<std::uint16_t>(DType::kUint16, map, {0, 3, 2}, 2);
    ExpectMeans<std::int16_t>(DType::kInt16, {1, 5, 3}, map, 3);
    ExpectMeans<float>(DType::kFloat32, map, map, 4);
  }
}

TEST(AreaAverage, BelowAPixelItInterpolatesBetweenCentres) {
  for (const AxisMap& map : {AxisMap{4, 1, 2}, AxisMap{30, 13, 20}, AxisMap{205, 409, 512}}) {
    ExpectMeans<std::uint8_t>(DType::kUint8, map, map, 5);
    ExpectMeans<float>(DType::kFloat32, map, map, 6);
  }
}

TEST(AreaAverage, HalvesAreRoundedUpAndEqualPixelsStay) {
  std::array<std::uint8_t, 8> source = {0, 1, 254, 255, 255, 255, 7, 7};
  std::array<std::uint8_t, 4> out{};
  AreaAverage average;
  ASSERT_TRUE(average
                  .Run(ContiguousView<3>(reinterpret_cast<std::byte*>(source.data()), DType::kUint8,
                                         {1, 8, 1}),
                       {}, {0, 2, 1},
                       ContiguousView<3>(reinterpret_cast<std::byte*>(out.data()), DType::kUint8,
                                         {1, 4, 1}))
                  .ok());
  EXPECT_EQ(out, (std::array<std::uint8_t, 4>{1, 255, 255, 7}));
}

TEST(AreaAverage, LabelsAreThoseUnderTheCentres) {
  std::array<std::uint8_t, 7> source = {1, 2, 3, 4, 5, 6, 7};
  std::array<std::uint8_t, 3> out{};
  const auto view = [](auto& values) {
    return ContiguousView<3>(reinterpret_cast<std::byte*>(values.data()), DType::kUint8,
                             {1, static_cast<std::int64_t>(values.size()), 1});
  };
  ASSERT_TRUE(TakeNearest(view(source), {}, {0, 7, 3}, view(out)).ok());
  EXPECT_EQ(out, (std::array<std::uint8_t, 3>{2, 4, 6}));
  EXPECT_FALSE(TakeNearest(view(source), {}, {1, 7, 3}, view(out)).ok());
}

TEST(AreaAverage, WhatReachesOutsideOrIsOfAnotherTypeIsRefused) {
  std::array<std::byte, 256> bytes{};
  AreaAverage average;
  const auto view = [&](DType dtype, std::int64_t width) {
    return ContiguousView<3>(bytes.data(), dtype, {4, width, 1});
  };
  EXPECT_FALSE(average.Run(view(DType::kUint8, 8), {}, {0, 2, 1}, view(DType::kUint8, 5)).ok());
  EXPECT_FALSE(average.Run(view(DType::kUint8, 8), {}, {-1, 2, 1}, view(DType::kUint8, 4)).ok());
  EXPECT_FALSE(average.Run(view(DType::kUint8, 8), {}, {0, 0, 1}, view(DType::kUint8, 4)).ok());
  EXPECT_FALSE(average.Run(view(DType::kUint8, 8), {}, {0, 2, 1}, view(DType::kUint16, 4)).ok());
  EXPECT_FALSE(average.Run(view(DType::kInt64, 8), {}, {0, 2, 1}, view(DType::kInt64, 4)).ok());
  EXPECT_FALSE(average.Run(view(DType::kUint8, 8), {}, {0, 1, 2}, view(DType::kUint8, 8)).ok());
}

}  // namespace
}  // namespace patchbay::ops
