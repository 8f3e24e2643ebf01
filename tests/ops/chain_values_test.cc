// Chains of other sources than uint8, and of patches with depth.
#include <cstring>
#include <vector>

#include <gtest/gtest.h>

#include "ops/cast/cast.h"
#include "ops/chain/chain.h"

namespace patchbay::ops {
namespace {

constexpr DType kOutputs[] = {DType::kUint8, DType::kFloat16, DType::kBfloat16, DType::kFloat32};

std::uint64_t Mix(std::uint64_t x) {
  x += 0x9e3779b97f4a7c15u;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  return x ^ (x >> 27);
}

/// A contiguous tile of a chain's source, value i made by `value`.
template <typename T, typename Value>
std::vector<T> Tile(const Chain& chain, const Value& value) {
  std::vector<T> out(
      static_cast<std::size_t>(chain.source_extent().Pixels() * chain.options().channels));
  for (std::size_t i = 0; i < out.size(); ++i) out[i] = static_cast<T>(value(i));
  return out;
}

template <typename T>
std::vector<std::byte> RanTile(const Chain& chain, std::vector<T> tile, const DrawKey& key) {
  const Extent size = chain.source_extent();
  const auto view = ContiguousView<4>(
      reinterpret_cast<std::byte*>(tile.data()), chain.options().source_dtype,
      {size.z, size.y, size.x, static_cast<std::int64_t>(chain.options().channels)});
  std::vector<std::byte> out(chain.patch_bytes(), std::byte{0xEE}), scratch;
  const Status status = chain.Run(view, key, out, scratch);
  EXPECT_TRUE(status.ok()) << status;
  return out;
}

ChainOptions Options(int channels) {
  ChainOptions options;
  options.patch = {3, 20, 20};
  options.channels = channels;
  options.preprocess =
      Json::array({Json{{"normalize", {{"scale", 255}, {"mean", {0.3}}, {"std", {0.2}}}}}});
  options.augment = Json::array({Json{{"flip", Json::object()}}, Json{{"rotate90", Json::object()}},
                                 Json{{"crop", {{"margin", {2, 3}}}}}});
  return options;
}

/// The same numbers in another type give the bits that the tables of uint8 define.
TEST(ChainValues, SmallNumbersOfEveryTypeGiveTheBitsOfUint8) {
  for (const DType to : kOutputs) {
    for (const int channels : {1, 3}) {
      for (const PatchLayout layout : {PatchLayout::kNchw, PatchLayout::kNhwc}) {
        ChainOptions options = Options(channels);
        options.augment[2]["crop"]["margin"] = {2, 2};
        options.dtype = to;
        options.layout = layout;
        const auto bytes = Chain::Compile(options);
        ASSERT_TRUE(bytes.ok()) << bytes.status();
        const auto value = [](std::size_t i) { return Mix(i) % 256; };
        for (std::uint64_t ordinal = 0; ordinal < 12; ++ordinal) {
          const DrawKey key{7, 1, ordinal, 0, DrawStream::kParameters};
          const auto expected = RanTile(*bytes, Tile<std::uint8_t>(*bytes, value), key);
          options.source_dtype = DType::kUint16;
          const auto words = *Chain::Compile(options);
          EXPECT_EQ(words.cpu_path(), "values");
          EXPECT_EQ(RanTile(words, Tile<std::uint16_t>(words, value), key), expected);
          options.source_dtype = DType::kInt16;
          const auto shorts = *Chain::Compile(options);
          EXPECT_EQ(RanTile(shorts, Tile<std::int16_t>(shorts, value), key), expected);
          options.source_dtype = DType::kFloat32;
          const auto floats = *Chain::Compile(options);
          EXPECT_EQ(RanTile(floats, Tile<float>(floats, value), key), expected);
          options.source_dtype = DType::kUint8;
        }
      }
    }
  }
}

TEST(ChainValues, NegativeAndLargeNumbersAreNormalisedInDoubleAndRoundedOnce) {
  ChainOptions options;
  options.patch = {4, 5, 7};
  options.channels = 1;
  options.source_dtype = DType::kInt16;
  options.preprocess =
      Json::array({Json{{"normalize", {{"scale", 1000}, {"mean", {0.05}}, {"std", {0.4}}}}}});
  const auto chain = *Chain::Compile(options);
  const auto tile = Tile<std::int16_t>(
      chain, [](std::size_t i) { return static_cast<std::int64_t>(Mix(i) % 65536) - 32768; });
  const auto out = RanTile(chain, tile, {});
  for (std::size_t i = 0; i < tile.size(); ++i) {
    float value;
    std::memcpy(&value, out.data() + 4 * i, 4);
    ASSERT_EQ(value, static_cast<float>((static_cast<double>(tile[i]) / 1000 - 0.05) / 0.4)) << i;
  }
}

TEST(ChainValues, ADeepPatchIsItsSlicesUnderOneDraw) {
  for (const DType source : {DType::kUint8, DType::kInt16}) {
    ChainOptions options = Options(1);
    options.augment[2]["crop"]["margin"] = {2, 2};
    options.source_dtype = source;
    options.dtype = DType::kFloat16;
    const auto deep = *Chain::Compile(options);
    options.patch.z = 1;
    const auto flat = *Chain::Compile(options);
    const auto run = [&](auto zero) {
      using T = decltype(zero);
      const auto tile = Tile<T>(deep, [](std::size_t i) { return Mix(i) % 200; });
      const DrawKey key{3, 0, 5, 0, DrawStream::kParameters};
      std::vector<std::byte> slices;
      const std::size_t per_slice = tile.size() / 3;
      for (std::size_t z = 0; z < 3; ++z) {
        const auto first = tile.begin() + static_cast<std::ptrdiff_t>(z * per_slice);
        const auto one = RanTile(
            flat, std::vector<T>(first, first + static_cast<std::ptrdiff_t>(per_slice)), key);
        slices.insert(slices.end(), one.begin(), one.end());
      }
      EXPECT_EQ(RanTile(deep, tile, key), slices);
    };
    source == DType::kUint8 ? run(std::uint8_t{}) : run(std::int16_t{});
  }
}

TEST(ChainValues, PatchesThatAreTooLargeOrOfOtherTypesAreRefused) {
  ChainOptions options = Options(1);
  options.augment = Json::array();
  options.patch = {1024, 1024, 1024};
  EXPECT_TRUE(absl::IsInvalidArgument(Chain::Compile(options).status()));
  options.patch = {0, 8, 8};
  EXPECT_TRUE(absl::IsInvalidArgument(Chain::Compile(options).status()));
  options.patch = {2, 8, 8};
  options.source_dtype = DType::kFloat64;
  EXPECT_TRUE(absl::IsUnimplemented(Chain::Compile(options).status()));
  options.source_dtype = DType::kInt16;
  const auto chain = Chain::Compile(options);
  ASSERT_TRUE(chain.ok()) << chain.status();
  std::vector<std::byte> out(chain->patch_bytes()), scratch, tile(2 * 8 * 8);
  const auto bytes = ContiguousView<4>(tile.data(), DType::kUint8, {2, 8, 8, 1});
  EXPECT_TRUE(absl::IsInvalidArgument(chain->Run(bytes, {}, out, scratch)));
}

}  // namespace
}  // namespace patchbay::ops
