// resample against SciPy's map_coordinates, and properties for any grid.
#include "ops/geometry/resample.h"

#include <array>
#include <cmath>
#include <fstream>
#include <random>

#include <gtest/gtest.h>

#include "runtime/core/hash.h"
#include "runtime/core/strings.h"
#include "tests/ops/python_oracle.h"

namespace patchbay::ops {
namespace {

std::vector<float> HuNoise(const Extent& size, unsigned seed) {
  std::mt19937 random(seed);
  std::uniform_int_distribution<int> hu(-1024, 3071);
  std::vector<float> values(static_cast<std::size_t>(size.Pixels()));
  for (float& v : values) v = static_cast<float>(hu(random));
  return values;
}

std::vector<float> Resampled(const std::vector<float>& in, const Extent& from, const Extent& to,
                             int order, std::int64_t pieces = 1) {
  const auto resample = Resample::Make(from, to, order);
  EXPECT_TRUE(resample.ok()) << resample.status();
  std::vector<float> planes(static_cast<std::size_t>(from.z * to.y * to.x));
  std::vector<float> out(static_cast<std::size_t>(to.Pixels()));
  for (std::int64_t i = 0; i < pieces; ++i) {
    const std::int64_t begin = from.z * i / pieces, end = from.z * (i + 1) / pieces;
    resample->Planes(in.data(), begin, end - begin, planes.data());
  }
  for (std::int64_t i = 0; i < pieces; ++i) {
    const std::int64_t begin = to.y * i / pieces, end = to.y * (i + 1) / pieces;
    resample->Rows(planes.data(), begin, end - begin, out.data());
  }
  return out;
}

/// The largest difference from SciPy in double precision, for the orders 0, 1 and 3.
std::array<double, 3> WorstAgainstScipy(const PythonOracle& oracle, const Extent& from,
                                        const Extent& to) {
  const std::vector<float> in = HuNoise(from, 5);
  std::ofstream(oracle.PathOf("in.raw"), std::ios::binary)
      .write(reinterpret_cast<const char*>(in.data()),
             static_cast<std::streamsize>(in.size() * sizeof(float)));
  oracle.Ask({{"from", {from.z, from.y, from.x}}, {"to", {to.z, to.y, to.x}}});
  std::array<double, 3> worst{};
  for (std::size_t o = 0; o < 3; ++o) {
    const int order = o == 2 ? 3 : static_cast<int>(o);
    const std::string bytes = oracle.Read(StrCat("out", order, ".raw"));
    const std::vector<float> out = Resampled(in, from, to, order);
    if (bytes.size() != out.size() * sizeof(double)) return {1e9, 1e9, 1e9};
    const auto* expected = reinterpret_cast<const double*>(bytes.data());
    for (std::size_t i = 0; i < out.size(); ++i) {
      worst[o] = std::max(worst[o], std::abs(static_cast<double>(out[i]) - expected[i]));
    }
  }
  return worst;
}

TEST(Resample, AgreesWithScipy) {
  const PythonOracle oracle(PATCHBAY_RESAMPLE_ORACLE, "numpy, scipy");
  if (!oracle.missing().empty()) GTEST_SKIP() << oracle.missing();
  // float32 sums of values up to 4,000: far below the 0.05 HU that is promised.
  constexpr double kTolerance = 0.005;
  const std::pair<Extent, Extent> grids[] = {{{12, 40, 37}, {20, 27, 25}},
                                             {{9, 17, 64}, {9, 34, 90}},
                                             {{30, 21, 22}, {7, 21, 44}},
                                             {{2, 3, 5}, {6, 9, 4}}};
  for (const auto& [from, to] : grids) {
    const auto [nearest, linear, cubic] = WorstAgainstScipy(oracle, from, to);
    EXPECT_EQ(nearest, 0) << from.ToString();
    EXPECT_LT(linear, kTolerance) << from.ToString();
    EXPECT_LT(cubic, kTolerance) << from.ToString();
  }
}

TEST(Resample, TheSameGridGivesTheSameValues) {
  const Extent size{7, 19, 33};
  const std::vector<float> in = HuNoise(size, 1);
  EXPECT_EQ(Resampled(in, size, size, 0), in);
  EXPECT_EQ(Resampled(in, size, size, 1), in);
  const std::vector<float> spline = Resampled(in, size, size, 3);
  for (std::size_t i = 0; i < in.size(); ++i) ASSERT_NEAR(spline[i], in[i], 0.01);
}

TEST(Resample, AConstantStaysOneOnAnyGrid) {
  for (const int order : {0, 1, 3}) {
    const std::vector<float> in(5 * 6 * 7, -1024.0f);
    for (const float v : Resampled(in, {5, 6, 7}, {11, 3, 9}, order)) {
      ASSERT_NEAR(v, -1024, 1e-3) << order;
    }
    EXPECT_EQ(Resampled({3.0f}, {1, 1, 1}, {2, 2, 2}, order), std::vector<float>(8, 3.0f));
  }
}

TEST(Resample, HoweverItIsCutTheBitsAreTheSame) {
  const Extent from{13, 21, 35}, to{21, 17, 30};
  const std::vector<float> in = HuNoise(from, 3);
  for (const int order : {0, 1, 3}) {
    EXPECT_EQ(Resampled(in, from, to, order, 5), Resampled(in, from, to, order, 1));
  }
}

TEST(Resample, OtherOrdersAndEmptyGridsAreRefused) {
  EXPECT_FALSE(Resample::Make({1, 1, 1}, {1, 1, 1}, 2).ok());
  EXPECT_FALSE(Resample::Make({1, 1, 1}, {1, 1, 1}, {0, 3, 2}).ok());
  EXPECT_FALSE(Resample::Make({0, 1, 1}, {1, 1, 1}, 1).ok());
  EXPECT_FALSE(Resample::Make({1, 1, 1}, {1, 0, 1}, 1).ok());
}

}  // namespace
}  // namespace patchbay::ops
