// normalize and cast: closed forms, exhaustive rounding, refusals.
#include <cmath>
#include <cstring>

#include <gtest/gtest.h>
#include <immintrin.h>

#include "ops/cast/cast.h"
#include "ops/normalize/normalize.h"
#include "tests/contract/op_contract.h"

namespace patchbay::ops {
namespace {

OpUnderTest NormalizeOp() {
  const NormalizeOptions options{255.0, {0.7}, {0.2}};
  return {.name = "normalize",
          .step = {{"normalize", {{"mean", options.mean}, {"std", options.std}}}},
          .expected = [options](const ReferenceImage& source, const DrawKey&) {
            return Normalized(source, options);
          }};
}

OpUnderTest CastOp(DType dtype) {
  return {.name = StrCat("cast to ", NameOf(dtype)),
          .step = {{"cast", {{"dtype", NameOf(dtype)}}}},
          .expected = [dtype](const ReferenceImage& source, const DrawKey&) {
            return Rounded(source, dtype);
          }};
}

/// Float bit patterns that matter: every exponent with mantissas at and around the rounding places
/// of both 16-bit types, then noise.
std::vector<float> TellingFloats() {
  std::vector<float> values;
  for (std::uint32_t sign : {0u, 0x80000000u}) {
    for (std::uint32_t exponent = 0; exponent < 256; ++exponent) {
      for (std::uint32_t mantissa :
           {0u, 1u, 0xFFFu, 0x1000u, 0x1001u, 0x2000u, 0x3000u, 0x7FFFu, 0x8000u, 0x8001u, 0x18000u,
            0x400000u, 0x7FE000u, 0x7FEFFFu, 0x7FF000u, 0x7FFFFFu}) {
        values.push_back(BitsFloat(sign | (exponent << 23) | mantissa));
      }
    }
  }
  std::uint32_t state = 12345;
  for (int i = 0; i < 2'000'000; ++i) {
    state = state * 1664525u + 1013904223u;
    values.push_back(BitsFloat(state));
  }
  return values;
}

TEST(Cast, HalfBitsAreThoseOfTheProcessor) {
  for (const float value : TellingFloats()) {
    const __m128i converted = _mm_cvtps_ph(_mm_set_ss(value), _MM_FROUND_TO_NEAREST_INT);
    ASSERT_EQ(HalfBits(value), static_cast<std::uint16_t>(_mm_extract_epi16(converted, 0)))
        << std::hex << FloatBits(value);
  }
}

TEST(Cast, EveryHalfComesBackFromItsValue) {
  for (std::uint32_t bits = 0; bits < 0x10000; ++bits) {
    const float value = HalfValue(static_cast<std::uint16_t>(bits));
    if (std::isnan(value)) continue;
    ASSERT_EQ(HalfBits(value), bits);
    ASSERT_EQ(FloatBits(value), FloatBits(_cvtsh_ss(static_cast<std::uint16_t>(bits))));
  }
}

TEST(Cast, BfloatIsTheNearestOfItsTwoNeighboursAndEvenWhenTied) {
  for (const float value : TellingFloats()) {
    const std::uint16_t bits = Bfloat16Bits(value);
    if (std::isnan(value)) {
      ASSERT_TRUE(std::isnan(BitsFloat(std::uint32_t{bits} << 16)));
      continue;
    }
    if (std::isinf(value)) {
      ASSERT_EQ(bits, FloatBits(value) >> 16);
      continue;
    }
    const auto at = [](std::uint32_t b) { return static_cast<double>(BitsFloat(b << 16)); };
    const std::uint32_t low = FloatBits(value) >> 16, high = low + 1;
    // Beyond the largest finite value the next step counts as 2^128.
    const double upper = std::isinf(at(high)) ? std::copysign(0x1p128, value) : at(high);
    const double to_low = std::abs(value - at(low)), to_high = std::abs(upper - value);
    const bool take_high = to_high < to_low || (to_high == to_low && (low & 1u) != 0);
    ASSERT_EQ(bits, take_high ? high : low) << std::hex << FloatBits(value);
  }
}

TEST(Cast, Uint8RoundsToEvenAndClamps) {
  for (int i = -1000; i < 3000; ++i) {
    const float value = static_cast<float>(i) / 8.0f;
    const double expected = std::min(255.0, std::max(0.0, std::nearbyint(double{value})));
    ASSERT_EQ(Uint8Value(value), expected) << value;
  }
  EXPECT_EQ(Uint8Value(std::nanf("")), 0);
  EXPECT_EQ(Uint8Value(-INFINITY), 0);
  EXPECT_EQ(Uint8Value(INFINITY), 255);
  EXPECT_EQ(Uint8Value(std::nextafter(0.5f, 1.0f)), 1);
}

TEST(Normalize, IsTheFormula) {
  ChainOptions options;
  options.patch.y = 1;
  options.patch.x = 256;
  options.layout = PatchLayout::kNhwc;
  options.preprocess =
      Json::array({Json{{"normalize", {{"mean", {0.7, 0.55, 0.0}}, {"std", {0.2, 0.1, 1.0}}}}}});
  const auto chain = Chain::Compile(options);
  ASSERT_TRUE(chain.ok()) << chain.status();
  std::vector<std::byte> in(256 * 3), bytes(chain->patch_bytes()), scratch;
  for (std::size_t i = 0; i < in.size(); ++i) in[i] = static_cast<std::byte>(i / 3);
  ASSERT_TRUE(
      chain->Run(ContiguousView<3>(in.data(), DType::kUint8, {1, 256, 3}), {}, bytes, scratch)
          .ok());
  std::vector<float> out(256 * 3);
  ASSERT_EQ(bytes.size(), out.size() * sizeof(float));
  std::memcpy(out.data(), bytes.data(), bytes.size());
  EXPECT_EQ(out[3 * 255 + 2], 1.0f);
  EXPECT_EQ(out[0], -3.5f);
  EXPECT_EQ(out[3 * 51], static_cast<float>((0.2 - 0.7) / 0.2));
  EXPECT_EQ(out[3 * 255 + 1], static_cast<float>((1.0 - 0.55) / 0.1));
}

TEST(Normalize, RefusesConstantsThatCannotBe) {
  const auto code = [](NormalizeOptions options) {
    return NormalizeChannels(options, 3).status().code();
  };
  EXPECT_EQ(code({255, {0, 0, 0}, {1, 1, 1}}), absl::StatusCode::kOk);
  EXPECT_EQ(code({255, {0}, {1}}), absl::StatusCode::kOk);
  for (const NormalizeOptions& bad :
       {NormalizeOptions{255, {0, 0}, {1}}, NormalizeOptions{255, {0}, {1, 1, 1, 1}},
        NormalizeOptions{255, {}, {1}}, NormalizeOptions{255, {0}, {0}},
        NormalizeOptions{255, {0}, {1, -1, 1}}, NormalizeOptions{0, {0}, {1}},
        NormalizeOptions{255, {INFINITY}, {1}}, NormalizeOptions{255, {0}, {NAN}},
        NormalizeOptions{NAN, {0}, {1}}}) {
    EXPECT_EQ(code(bad), absl::StatusCode::kInvalidArgument);
  }
}

TEST(Normalize, KeepsTheOpContract) { ExpectOpContract(NormalizeOp()); }
TEST(Cast, KeepsTheOpContract) {
  for (const DType dtype : kPatchTypes) ExpectOpContract(CastOp(dtype));
}

TEST(PointwiseOnGpu, HasTheBitsOfTheCpu) {
  PB_NEED_GPU();
  ExpectDeviceTwin(NormalizeOp());
  for (const DType dtype : kPatchTypes) ExpectDeviceTwin(CastOp(dtype));
}

}  // namespace
}  // namespace patchbay::ops
