// Frames that any c-blosc reads, and that depend on nothing but the chunk.
#include <random>

#include <blosc.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "runtime/core/status.h"
#include "runtime/format/zarr/codec/blosc.h"

namespace patchbay::zarr {
namespace {

constexpr std::uint32_t kBlock = 131'072;

/// Rising values with `noise` different ones on top: 1 repeats for long, 256 does not compress.
std::vector<std::byte> Pixels(std::size_t size, unsigned noise, std::mt19937& random) {
  std::vector<std::byte> raw(size);
  for (std::size_t i = 0; i < size; ++i) {
    raw[i] = static_cast<std::byte>(i / 700 + random() % noise);
  }
  return raw;
}

std::vector<std::byte> Join(const std::vector<std::byte>& a, const std::vector<std::byte>& b) {
  std::vector<std::byte> joined = a;
  joined.insert(joined.end(), b.begin(), b.end());
  return joined;
}

std::vector<std::byte> FrameOf(BloscZstdEncoder& encoder, const std::vector<std::byte>& raw) {
  const auto frame = encoder.Encode(raw);
  PB_CHECK(frame.ok());
  return {frame->begin(), frame->end()};
}

/// The bytes that c-blosc decodes from a frame, after it found nothing wrong with it.
std::vector<std::byte> DecodedByBlosc(const std::vector<std::byte>& frame) {
  std::size_t size = 0;
  EXPECT_EQ(blosc_cbuffer_validate(frame.data(), frame.size(), &size), 0);
  std::vector<std::byte> raw(size);
  EXPECT_EQ(blosc_decompress_ctx(frame.data(), raw.data(), raw.size(), 1), static_cast<int>(size));
  return raw;
}

std::size_t SizeByBlosc(int level, const std::vector<std::byte>& raw) {
  std::vector<std::byte> out(raw.size() + BLOSC_MAX_OVERHEAD);
  const int n = blosc_compress_ctx(level, BLOSC_NOSHUFFLE, 1, raw.size(), raw.data(), out.data(),
                                   out.size(), "zstd", kBlock, 1);
  PB_CHECK(n > 0);
  return static_cast<std::size_t>(n);
}

class AnyLevel : public testing::TestWithParam<int> {};

TEST_P(AnyLevel, IsReadByBloscWhateverTheSizeAndTheNoise) {
  const unsigned seed = std::random_device()();
  SCOPED_TRACE(testing::Message() << "seed " << seed);
  std::mt19937 random(seed);
  BloscZstdEncoder encoder(GetParam(), kBlock);
  for (const std::size_t size : {1u, 2u, 100u, 5'000u, 131'071u, 131'072u, 131'073u, 786'432u}) {
    if (GetParam() > 6 && size > 140'000) continue;  // slow, and no other path
    for (const unsigned noise : {1u, 3u, 20u, 256u}) {
      const auto raw = Pixels(size, noise, random);
      const auto frame = FrameOf(encoder, raw);
      EXPECT_LE(frame.size(), raw.size() + BLOSC_MIN_HEADER_LENGTH);
      EXPECT_TRUE(DecodedByBlosc(frame) == raw) << size << " bytes, noise " << noise;
    }
  }
}

TEST_P(AnyLevel, GivesTheSameFrameWhateverWasEncodedBefore) {
  std::mt19937 random(7);
  const auto smooth = Pixels(400'000, 1, random), noisy = Pixels(400'000, 40, random);
  BloscZstdEncoder used(GetParam(), kBlock), fresh(GetParam(), kBlock);
  const auto expected = FrameOf(fresh, noisy);
  FrameOf(used, smooth);
  EXPECT_TRUE(FrameOf(used, noisy) == expected);
  EXPECT_TRUE(FrameOf(used, noisy) == expected);
}

INSTANTIATE_TEST_SUITE_P(Levels, AnyLevel, testing::Values(1, 3, 4, 5, 6, 7, 9));

TEST(BloscZstdEncoder, StoresOnlyTheBlocksThatDoNotCompress) {
  std::mt19937 random(3);
  const auto smooth = Pixels(kBlock, 1, random), noise = Pixels(kBlock, 256, random);
  BloscZstdEncoder encoder(5, kBlock);
  const std::size_t alone = FrameOf(encoder, smooth).size();
  const auto mixed = Join(Join(smooth, noise), smooth);
  const auto frame = FrameOf(encoder, mixed);
  EXPECT_LT(frame.size(), kBlock + 2 * alone);
  EXPECT_TRUE(DecodedByBlosc(frame) == mixed);
}

TEST(BloscZstdEncoder, SearchesRepetitionsAsThoroughlyAsBlosc) {
  // Faint staining: pixels of a few colours, in words of two to nine that return.
  std::mt19937 random(11);
  std::vector<std::vector<std::byte>> words;
  for (int i = 0; i < 300; ++i) {
    words.emplace_back();
    for (unsigned pixel = 2 + random() % 8; pixel > 0; --pixel) {
      const auto shade = static_cast<std::byte>(240 + random() % 4);
      words.back().insert(words.back().end(), {shade, std::byte{235}, shade});
    }
  }
  std::vector<std::byte> raw;
  while (raw.size() < 3 * kBlock) {
    const auto& word = words[random() % words.size()];
    raw.insert(raw.end(), word.begin(), word.end());
  }
  BloscZstdEncoder quick(3, kBlock), adaptive(5, kBlock);
  const std::size_t by_blosc = SizeByBlosc(5, raw);
  EXPECT_LT(FrameOf(adaptive, raw).size(), by_blosc * 105 / 100);
  EXPECT_GT(FrameOf(quick, raw).size(), by_blosc * 120 / 100);
}

TEST(BloscZstdEncoder, FromLevelSevenOnGivesTheBytesOfBlosc) {
  std::mt19937 random(5);
  const auto raw = Pixels(kBlock, 20, random);
  for (const int level : {7, 8, 9}) {
    BloscZstdEncoder encoder(level, kBlock);
    EXPECT_EQ(FrameOf(encoder, raw).size(), SizeByBlosc(level, raw)) << level;
  }
}

TEST(BloscZstdEncoder, RefusesAnEmptyChunk) {
  BloscZstdEncoder encoder(5, kBlock);
  const auto frame = encoder.Encode({});
  EXPECT_TRUE(absl::IsInvalidArgument(frame.status()));
}

}  // namespace
}  // namespace patchbay::zarr
