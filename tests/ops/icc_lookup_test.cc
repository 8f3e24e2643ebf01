// icc_to_srgb: the interpolation against one in double, its place in a chain, refusals.
#include "ops/icc_to_srgb/icc_lookup.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>

#include <gtest/gtest.h>

#include "ops/chain/chain.h"
#include "ops/chain/scalar_lanes.h"
#include "runtime/core/random.h"
#include "tests/contract/op_contract.h"

namespace patchbay::ops {
namespace {

/// Values of random nodes, some beyond what sRGB shows.
std::vector<double> RandomLevels(std::uint64_t seed) {
  std::vector<double> levels;
  for (std::uint32_t i = 0; levels.size() < 3 * kIccNodes; ++i) {
    const PhiloxBlock block = Draw({seed, 0, 0, 0, DrawStream::kParameters}, i);
    for (const std::uint32_t word : block.word) levels.push_back(word / 4294967296.0 * 400 - 70);
  }
  levels.resize(3 * kIccNodes);
  return levels;
}

/// Tetrahedral interpolation by its definition: from the cell's lowest corner along the axes in the
/// order of their parts.
std::array<double, 3> Expected(const IccLookup& lookup, const std::array<double, 3>& device) {
  std::array<int, 3> cell{}, order = {0, 1, 2};
  std::array<double, 3> part{};
  for (std::size_t c = 0; c < 3; ++c) {
    const double at = device[c] * (kIccGrid - 1) / 255;
    cell[c] = std::min(static_cast<int>(at), kIccGrid - 2);
    part[c] = at - cell[c];
  }
  std::stable_sort(order.begin(), order.end(), [&](int a, int b) {
    return part[static_cast<std::size_t>(a)] > part[static_cast<std::size_t>(b)];
  });
  const auto node = [&](int c) {
    return double{
        lookup
            .nodes()[static_cast<std::size_t>((cell[0] * kIccGrid + cell[1]) * kIccGrid + cell[2])]
            .level[c]};
  };
  std::array<double, 3> shown = {node(0), node(1), node(2)};
  for (const int axis : order) {
    const std::array<double, 3> before = {node(0), node(1), node(2)};
    ++cell[static_cast<std::size_t>(axis)];
    for (int c = 0; c < 3; ++c) {
      shown[static_cast<std::size_t>(c)] +=
          part[static_cast<std::size_t>(axis)] * (node(c) - before[static_cast<std::size_t>(c)]);
    }
  }
  for (double& v : shown) v = std::clamp(v, 0.0, 255.0);
  return shown;
}

std::array<float, 3> Applied(const IccLookup& lookup, std::array<float, 3> rgb) {
  lookup.Apply(&rgb[0], &rgb[1], &rgb[2], 1);
  return rgb;
}

TEST(IccLookup, IsTetrahedralInterpolation) {
  const auto lookup = IccLookup::FromLevels(RandomLevels(1));
  ASSERT_TRUE(lookup.ok()) << lookup.status();
  std::vector<std::array<float, 3>> colours = {{0, 0, 0},        {255, 255, 255}, {255, 0, 0},
                                               {0, 255, 0},      {0, 0, 255},     {100, 100, 100},
                                               {100, 100, 7.5f}, {3, 90, 90},     {-4, 300, 128}};
  for (std::uint32_t i = 0; i < 2000; ++i) {
    const PhiloxBlock block = Draw({5, 0, 0, 0, DrawStream::kParameters}, i);
    colours.push_back({255 * UniformFloat(block.word[0]), 255 * UniformFloat(block.word[1]),
                       255 * UniformFloat(block.word[2])});
  }
  for (const auto& rgb : colours) {
    std::array<double, 3> within;
    for (std::size_t c = 0; c < 3; ++c) within[c] = std::clamp<double>(double{rgb[c]}, 0, 255);
    const auto expected = Expected(*lookup, within);
    const auto shown = Applied(*lookup, rgb);
    // Neighbouring nodes differ by up to 400: float rounds the place in the cell.
    for (std::size_t c = 0; c < 3; ++c) EXPECT_NEAR(double{shown[c]}, expected[c], 4e-3);
  }
}

TEST(IccLookup, RowsOfAnyWidthHaveTheBitsOfSingleValues) {
  const auto lookup = IccLookup::FromLevels(RandomLevels(4));
  ASSERT_TRUE(lookup.ok());
  // Between nodes and beyond levels, on nodes, on the byte levels, and equal to another channel.
  const auto level = [](std::uint32_t word, float before) {
    const float any = 300 * UniformFloat(word) - 20;
    const float choices[] = {any, static_cast<float>(word % kIccGrid) * 255 / (kIccGrid - 1),
                             static_cast<float>(word & 255), before};
    return choices[word >> 8 & 3];
  };
  std::uint32_t draws = 0;
  for (std::int64_t width = 1; width <= 300; ++width) {
    std::vector<float> row(static_cast<std::size_t>(3 * width)), expected;
    for (std::int64_t j = 0; j < width; ++j) {
      const PhiloxBlock block = Draw({6, 0, 0, 0, DrawStream::kParameters}, draws++);
      float before = 0;
      for (std::int64_t c = 0; c < 3; ++c) {
        before = level(block.word[c], before);
        row[static_cast<std::size_t>(c * width + j)] = before;
      }
    }
    expected = row;
    for (float* at = expected.data(); at != expected.data() + width; ++at) {
      ScalarLanes rgb[3] = {{at[0]}, {at[width]}, {at[2 * width]}};
      Apply(lookup->step(), rgb);
      for (int c = 0; c < 3; ++c) at[c * width] = rgb[c].v;
    }
    lookup->Apply(row.data(), row.data() + width, row.data() + 2 * width, width);
    ASSERT_EQ(std::memcmp(row.data(), expected.data(), row.size() * sizeof(float)), 0) << width;
  }
}

TEST(IccLookup, ComesBackFromJsonAsItWas) {
  const auto lookup = IccLookup::FromLevels(RandomLevels(2));
  ASSERT_TRUE(lookup.ok());
  const Json json = lookup->ToJson();
  const auto again = IccLookup::FromJson(json);
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_EQ(again->digest(), lookup->digest());
  EXPECT_EQ(std::memcmp(again->nodes().data(), lookup->nodes().data(), 16 * kIccNodes), 0);
  const auto refusal = [&](const char* key, const Json& value) {
    Json wrong = json;
    wrong[key] = value;
    return std::string(IccLookup::FromJson(wrong).status().message());
  };
  EXPECT_NE(refusal("grid", 17).find("key 'grid': expected"), std::string::npos);
  EXPECT_NE(refusal("steps", "32"), "");
  EXPECT_NE(refusal("values", "AAAA").find("wrong size for the grid"), std::string::npos);
  EXPECT_NE(refusal("values", "*"), "");
  EXPECT_NE(refusal("sha256", std::string(64, '0')).find("SHA-256 mismatch"), std::string::npos);
  EXPECT_FALSE(IccLookup::FromJson(Json::array()).ok());
  EXPECT_FALSE(IccLookup::FromLevels({1, 2, 3}).ok());
  std::vector<double> infinite(3 * kIccNodes, 1.0);
  infinite[7] = INFINITY;
  EXPECT_FALSE(IccLookup::FromLevels(infinite).ok());
}

ChainOptions OptionsOf(const char* preprocess, const char* augment = "[]") {
  ChainOptions options;
  options.patch = Flat(24, 40);
  options.preprocess = Json::parse(preprocess);
  options.augment = Json::parse(augment);
  return options;
}

std::vector<float> MadePatch(const ChainOptions& options, const ImageColours& colours,
                             CpuLevel level) {
  ChainOptions at_level = options;
  at_level.cpu_level = level;
  const auto chain = Chain::Compile(at_level);
  EXPECT_TRUE(chain.ok()) << chain.status();
  const Spaced source = NoiseSource(*chain);
  std::vector<std::byte> out(chain->patch_bytes()), scratch;
  EXPECT_TRUE(
      chain->Run(source.view, {7, 1, 3, 0, DrawStream::kParameters}, out, scratch, colours).ok());
  std::vector<float> values(out.size() / 4);
  std::memcpy(values.data(), out.data(), out.size());
  return values;
}

TEST(IccToSrgb, ComesAfterGeometryAndBeforeStainsWhereverItIsNamed) {
  const auto lookup = IccLookup::FromLevels(RandomLevels(3));
  ImageColours colours;
  colours.icc = &*lookup;
  const auto plain = MadePatch(OptionsOf("[]", R"([{"affine": {"p": 1, "degrees": [10, 20]}}])"),
                               {}, CpuLevel::kBest);
  const auto shown = MadePatch(
      OptionsOf(R"([{"icc_to_srgb": {}}])", R"([{"affine": {"p": 1, "degrees": [10, 20]}}])"),
      colours, CpuLevel::kBest);
  const std::size_t plane = plain.size() / 3;
  for (std::size_t i = 0; i < plane; ++i) {
    const auto expected = Applied(*lookup, {plain[i], plain[plane + i], plain[2 * plane + i]});
    for (std::size_t c = 0; c < 3; ++c) ASSERT_EQ(shown[c * plane + i], expected[c]) << i;
  }
  const auto first = MadePatch(OptionsOf(R"([{"icc_to_srgb": {}}, {"hed_jitter": {"p": 1}}])"),
                               colours, CpuLevel::kBest);
  EXPECT_EQ(first, MadePatch(OptionsOf(R"([{"hed_jitter": {"p": 1}}, {"icc_to_srgb": {}}])"),
                             colours, CpuLevel::kBest));
  EXPECT_NE(first, MadePatch(OptionsOf(R"([{"hed_jitter": {"p": 1}}])"), {}, CpuLevel::kBest));
  for (const CpuLevel level : kCpuLevels) {
    EXPECT_EQ(first, MadePatch(OptionsOf(R"([{"icc_to_srgb": {}}, {"hed_jitter": {"p": 1}}])"),
                               colours, level));
  }
}

TEST(IccToSrgb, ImagesWithoutALookupKeepTheirColours) {
  EXPECT_EQ(MadePatch(OptionsOf(R"([{"icc_to_srgb": {}}])"), {}, CpuLevel::kBest),
            MadePatch(OptionsOf("[]"), {}, CpuLevel::kBest));
}

TEST(IccToSrgb, RefusesWhatItCannotTake) {
  const auto refusal = [](const ChainOptions& options) {
    return std::string(Chain::Compile(options).status().message());
  };
  ChainOptions grey = OptionsOf(R"([{"icc_to_srgb": {}}])");
  grey.channels = 1;
  EXPECT_NE(refusal(grey).find("'preprocess[0].icc_to_srgb': needs red, green and blue"),
            std::string::npos);
  ChainOptions wide = OptionsOf(R"([{"icc_to_srgb": {}}])");
  wide.source_dtype = DType::kUint16;
  EXPECT_NE(refusal(wide).find("needs images of uint8, not uint16"), std::string::npos);
  EXPECT_NE(refusal(OptionsOf(R"([{"icc_to_srgb": {}}, {"icc_to_srgb": {}}])")).find("named twice"),
            std::string::npos);
}

}  // namespace
}  // namespace patchbay::ops
