// The sums of spectral: merging, bytes, what people read, and the options they are made for.
#include "ops/spectral/spectral_sums.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>

#include <gtest/gtest.h>

#include "runtime/core/hash.h"
#include "runtime/core/strings.h"

namespace patchbay::ops {
namespace {

constexpr std::uint64_t kSumsSeed = 20260;

/// Sums that frames could have given: every counter consistent with the others.
SpectralSums Plausible(const plan::SpectralOptions& options, std::uint64_t frames,
                       std::uint64_t seed) {
  std::mt19937_64 random(seed);
  SpectralSums sums(options);
  const auto frame = static_cast<std::uint64_t>(options.frame);
  std::uint64_t left = frames * frame * frame;
  sums.frames = frames;
  for (std::size_t bin = 0; bin < kSpectralBins && left > 0; ++bin) {
    const std::uint64_t count =
        bin + 1 == kSpectralBins ? left : std::min(left, random() % (frames * 900 + 1));
    sums.histogram[bin] = count;
    sums.sum_q += absl::uint128(count) * (256 * bin + 100);
    sums.sum_qq += absl::uint128(count) * (256 * bin + 100) * (256 * bin + 100);
    left -= count;
  }
  for (std::size_t k = 1; k < sums.ring_power.size(); ++k) {
    sums.ring_power[k] = absl::uint128(frames) * (random() >> (k % 40));
  }
  for (std::uint64_t& sum : sums.coefficient_q) sum = random() >> 30;
  for (std::uint64_t& sum : sums.coefficient_qq) sum = random() >> 20;
  return sums;
}

/// The bytes with the checksum that fits them.
std::string Resealed(std::string bytes) {
  bytes.resize(bytes.size() - 4);
  const std::uint32_t sum = Crc32c(AsBytes(bytes));
  for (int i = 0; i < 4; ++i) bytes.push_back(static_cast<char>(sum >> (8 * i)));
  return bytes;
}

void ExpectDataLoss(std::string_view bytes, const plan::SpectralOptions& options,
                    std::string_view what) {
  const auto decoded = Decode(bytes, options);
  ASSERT_FALSE(decoded.ok()) << what;
  EXPECT_EQ(decoded.status().code(), absl::StatusCode::kDataLoss) << what;
}

TEST(SpectralSums, MergeInAnyOrderGivesTheSameSums) {
  for (const bool coefficients : {false, true}) {
    const plan::SpectralOptions options{.frame = 64, .hop = 32, .coefficients = coefficients};
    std::vector<SpectralSums> parts;
    for (std::uint64_t i = 0; i < 9; ++i) parts.push_back(Plausible(options, i * i, kSumsSeed + i));
    SpectralSums forward(options), backward(options), tree(options);
    for (std::size_t i = 0; i < parts.size(); ++i) {
      ASSERT_TRUE(Merge(parts[i], forward).ok());
      ASSERT_TRUE(Merge(parts[parts.size() - 1 - i], backward).ok());
    }
    for (std::size_t i = 0; i < parts.size(); i += 3) {
      SpectralSums branch(options);
      for (std::size_t k = i; k < i + 3; ++k) ASSERT_TRUE(Merge(parts[k], branch).ok());
      ASSERT_TRUE(Merge(branch, tree).ok());
    }
    EXPECT_EQ(forward, backward);
    EXPECT_EQ(forward, tree);
    EXPECT_EQ(forward.frames, 204U);
  }
}

TEST(SpectralSums, MergeRefusesSumsOfOtherOptions) {
  const SpectralSums small(plan::SpectralOptions{.frame = 64, .hop = 32});
  SpectralSums large(plan::SpectralOptions{}), with(plan::SpectralOptions{.coefficients = true});
  EXPECT_EQ(Merge(small, large).code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(Merge(large, with).code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(Merge(with, large).code(), absl::StatusCode::kInvalidArgument);
}

TEST(SpectralSums, MergeThatWouldOverflowChangesNothing) {
  const plan::SpectralOptions options{.frame = 32, .hop = 32, .coefficients = true};
  constexpr std::uint64_t kAll = std::numeric_limits<std::uint64_t>::max();
  SpectralSums one(options);
  one.frames = 1;
  one.sum_q = one.sum_qq = 1;
  one.histogram[5] = one.coefficient_q[3] = one.coefficient_qq[3] = 1;
  one.ring_power[2] = 1;
  std::vector<SpectralSums> full(7, SpectralSums(options));
  full[0].frames = kMaxSpectralFrames;
  full[1].sum_q = absl::Uint128Max();
  full[2].sum_qq = absl::Uint128Max();
  full[3].histogram[5] = kAll;
  full[4].ring_power[2] = absl::Uint128Max();
  full[5].coefficient_q[3] = kAll;
  full[6].coefficient_qq[3] = kAll;
  for (SpectralSums& into : full) {
    const SpectralSums before = into;
    EXPECT_EQ(Merge(one, into).code(), absl::StatusCode::kResourceExhausted);
    EXPECT_EQ(into, before);
  }
}

TEST(SpectralSums, DecodeUndoesEncode) {
  for (const int frame : {32, 64, 128, 256, 512}) {
    const plan::SpectralOptions options{.frame = frame, .hop = 32};
    for (const std::uint64_t frames : {0ULL, 1ULL, 77ULL, 1000000ULL}) {
      const SpectralSums sums = Plausible(options, frames, kSumsSeed + frames);
      const std::string bytes = Encode(sums);
      EXPECT_EQ(Encode(sums), bytes);
      const auto back = Decode(bytes, options);
      ASSERT_TRUE(back.ok()) << back.status();
      EXPECT_EQ(*back, sums);
    }
  }
}

TEST(SpectralSums, CoefficientsTravelApart) {
  const plan::SpectralOptions options{.frame = 64, .hop = 32, .coefficients = true};
  const SpectralSums sums = Plausible(options, 50, kSumsSeed);
  const std::string bytes = EncodeCoefficients(sums);
  auto back = Decode(Encode(sums), options);
  ASSERT_TRUE(back.ok());
  EXPECT_NE(*back, sums);
  ASSERT_TRUE(DecodeCoefficients(bytes, *back).ok());
  EXPECT_EQ(*back, sums);

  const SpectralSums many = Plausible(options, 70'000, kSumsSeed);  // more than 16 bits of frames
  auto many_back = Decode(Encode(many), options);
  ASSERT_TRUE(many_back.ok());
  ASSERT_TRUE(DecodeCoefficients(EncodeCoefficients(many), *many_back).ok());
  EXPECT_EQ(*many_back, many);

  const SpectralSums before = *back;
  for (std::size_t length = 0; length < bytes.size(); length += 97) {
    EXPECT_EQ(DecodeCoefficients(bytes.substr(0, length), *back).code(),
              absl::StatusCode::kDataLoss);
  }
  std::string flipped = bytes;
  flipped[1000] = static_cast<char>(flipped[1000] ^ 4);
  EXPECT_EQ(DecodeCoefficients(flipped, *back).code(), absl::StatusCode::kDataLoss);
  EXPECT_EQ(DecodeCoefficients(Resealed(bytes + "x"), *back).code(), absl::StatusCode::kDataLoss);
  EXPECT_EQ(*back, before);
  SpectralSums other = Plausible(options, 51, kSumsSeed),
               none(plan::SpectralOptions{.frame = 64, .hop = 32});
  none.frames = 50;
  EXPECT_EQ(DecodeCoefficients(bytes, other).code(), absl::StatusCode::kDataLoss);
  EXPECT_EQ(DecodeCoefficients(bytes, none).code(), absl::StatusCode::kDataLoss);
}

TEST(SpectralSums, EncodeStaysWithinItsBoundAtTheMostFrames) {
  const plan::SpectralOptions options{.frame = 512, .hop = 128};
  SpectralSums sums(options);
  sums.frames = kMaxSpectralFrames;
  // As many of the longest numbers as the totals allow.
  std::uint64_t left = sums.frames << 18;
  for (std::size_t bin = 0; bin < kSpectralBins; ++bin) {
    const std::uint64_t rest = kSpectralBins - 1 - bin;
    const std::uint64_t long_one = std::uint64_t{1} << 49, short_one = std::uint64_t{1} << 42;
    std::uint64_t count = left >= long_one + rest * short_one ? long_one : short_one;
    if (rest == 0) count = left;
    sums.histogram[bin] = count;
    left -= count;
    sums.sum_q += absl::uint128(count) * 256 * bin;
    sums.sum_qq += absl::uint128(count) * 256 * bin * 256 * bin;
  }
  for (std::size_t k = 1; k < sums.ring_power.size(); ++k) {
    sums.ring_power[k] = (absl::uint128(sums.frames) << 64) / 256;
  }
  const std::string bytes = Encode(sums);
  EXPECT_GT(bytes.size(), 7000U);
  EXPECT_LE(bytes.size(), kMaxSpectralSumsBytes);
  const auto back = Decode(bytes, options);
  ASSERT_TRUE(back.ok()) << back.status();
  EXPECT_EQ(*back, sums);
}

TEST(SpectralSums, DecodeRefusesDamagedBytes) {
  const plan::SpectralOptions options{.frame = 64, .hop = 32};
  const std::string bytes = Encode(Plausible(options, 12, kSumsSeed));
  for (std::size_t length = 0; length < bytes.size(); ++length) {
    ExpectDataLoss(bytes.substr(0, length), options, StrCat("cut at ", length));
  }
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    std::string flipped = bytes;
    flipped[i] = static_cast<char>(flipped[i] ^ (1 << (i % 8)));
    ExpectDataLoss(flipped, options, StrCat("bit flipped in byte ", i));
  }
  ExpectDataLoss(bytes + std::string(1, '\0'), options, "a byte too many");
}

TEST(SpectralSums, DecodeRefusesSealedBytesThatEncodeDidNotWrite) {
  const plan::SpectralOptions options{.frame = 64, .hop = 32};
  const SpectralSums good = Plausible(options, 12, kSumsSeed);
  const std::string bytes = Encode(good);
  ASSERT_TRUE(Decode(Resealed(bytes), options).ok());
  ExpectDataLoss(bytes, plan::SpectralOptions{}, "another frame");
  ExpectDataLoss(Resealed(bytes.substr(0, bytes.size() - 9) + "1234"), options, "rings missing");
  ExpectDataLoss(Resealed(bytes.substr(0, bytes.size() - 4) + "x1234"), options, "more at the end");
  std::string overlong = bytes;  // the count of frames as two bytes instead of one
  ASSERT_EQ(overlong[5], 12);
  overlong.replace(5, 1, std::string("\x8c\x00", 2));
  ExpectDataLoss(Resealed(overlong), options, "overlong");
  std::string endless = bytes;
  endless.replace(5, 1, std::string(40, '\xff'));
  ExpectDataLoss(Resealed(endless), options, "endless number");
  std::string wide = bytes;  // 2^64 frames
  wide.replace(5, 1, std::string("\x80\x80\x80\x80\x80\x80\x80\x80\x80\x02", 10));
  ExpectDataLoss(Resealed(wide), options, "more than 64 bits");
}

TEST(SpectralSums, DecodeRefusesCountsThatContradictEachOther) {
  const plan::SpectralOptions options{.frame = 64, .hop = 32};
  const SpectralSums good = Plausible(options, 12, kSumsSeed);
  std::vector<SpectralSums> bad(8, good);
  ++bad[0].frames;
  ++bad[1].histogram[3];
  bad[2].histogram[3] += std::uint64_t{1} << 63;
  bad[2].histogram[4] += std::uint64_t{1} << 63;  // wraps to the right total in 64 bits
  bad[3].sum_q = 0;
  bad[4].sum_q = absl::Uint128Max();
  bad[5].sum_qq = 1;
  bad[6].ring_power[7] = absl::uint128(1) << 80;
  bad[7].frames = std::uint64_t{1} << 62;
  for (std::size_t i = 0; i < bad.size(); ++i) {
    ExpectDataLoss(Encode(bad[i]), options, StrCat("case ", i));
  }
}

TEST(SpectralSums, MeanDeviationAndPercentilesAreThoseOfTheLevels) {
  const plan::SpectralOptions options{.frame = 32, .hop = 32};
  SpectralSums sums(options);
  EXPECT_EQ(MeanDb(sums), 0);
  EXPECT_EQ(StdDb(sums), 0);
  EXPECT_EQ(PercentileDb(sums, 0.5), 0);
  EXPECT_EQ(FocusDb(sums, options), 0);
  EXPECT_EQ(RingMeans(sums), std::vector<double>(17, 0.0));
  // One frame, a quarter of it at 10 dB and the rest at 30 dB.
  sums.frames = 1;
  sums.histogram[40] = 256;
  sums.histogram[120] = 768;
  sums.sum_q = 256 * 10240 + 768 * 30720;
  sums.sum_qq = absl::uint128(256) * 10240 * 10240 + absl::uint128(768) * 30720 * 30720;
  EXPECT_DOUBLE_EQ(MeanDb(sums), 25);
  EXPECT_NEAR(StdDb(sums), std::sqrt(0.25 * 225 + 0.75 * 25), 1e-12);
  EXPECT_DOUBLE_EQ(PercentileDb(sums, 0), 10);
  EXPECT_DOUBLE_EQ(PercentileDb(sums, 0.125), 10.125);
  EXPECT_DOUBLE_EQ(PercentileDb(sums, 0.25), 10.25);
  EXPECT_DOUBLE_EQ(PercentileDb(sums, 0.625), 30.125);
  EXPECT_DOUBLE_EQ(PercentileDb(sums, 1), 30.25);
  EXPECT_DOUBLE_EQ(PercentileDb(sums, 7), 30.25);
}

TEST(SpectralSums, EqualLevelsHaveNoDeviationHoweverMany) {
  SpectralSums sums(plan::SpectralOptions{});
  sums.frames = kMaxSpectralFrames;
  const absl::uint128 n = absl::uint128(sums.frames) << 16;
  sums.histogram[400] = absl::Uint128Low64(n);
  sums.sum_q = n * 102401;
  sums.sum_qq = n * 102401 * 102401;
  EXPECT_EQ(StdDb(sums), 0);
  EXPECT_NEAR(MeanDb(sums), 102401.0 / 1024, 1e-10);
}

TEST(SpectralSums, RingsHoldEveryCoefficientWithinTheCircleOnce) {
  for (const int frame : {32, 256, 512}) {
    const std::vector<std::int64_t> counts = RingCounts(frame);
    ASSERT_EQ(counts.size(), static_cast<std::size_t>(frame / 2 + 1));
    EXPECT_EQ(counts[0], 1);
    EXPECT_EQ(counts[1], 8);  // the four neighbours and, sqrt(2) away, the four corners
    EXPECT_EQ(counts[2], 12);
    std::int64_t inside = 0, total = 0;
    for (std::int64_t ky = -frame / 2; ky < frame / 2; ++ky) {
      for (std::int64_t kx = -frame / 2; kx < frame / 2; ++kx) {
        inside += 4 * (ky * ky + kx * kx) < (frame + 1) * (frame + 1) ? 1 : 0;
      }
    }
    for (const std::int64_t count : counts) total += count;
    EXPECT_EQ(total, inside);
  }
}

TEST(SpectralSums, FocusFallsWithTheFineDetailAndNeverLeavesItsRange) {
  const plan::SpectralOptions options;
  SpectralSums sharp(options), blurred(options), flat(options);
  sharp.frames = blurred.frames = flat.frames = 3;
  const std::vector<std::int64_t> counts = RingCounts(options.frame);
  for (std::size_t k = 1; k < sharp.ring_power.size(); ++k) {
    sharp.ring_power[k] = absl::uint128(3 * counts[k]) << 30;
    blurred.ring_power[k] = sharp.ring_power[k] / (k >= 64 ? 1000 : 1);
  }
  EXPECT_NEAR(FocusDb(sharp, options), 0, 1e-9);
  EXPECT_NEAR(FocusDb(blurred, options), -30, 1e-5);
  EXPECT_LT(FocusDb(flat, options), -100);
  EXPECT_TRUE(std::isfinite(FocusDb(flat, options)));
}

TEST(SpectralOptions, TravelAsJson) {
  const plan::SpectralOptions odd{.frame = 64,
                                  .hop = 30,
                                  .window = plan::SpectralWindow::kHann,
                                  .prefilter = plan::SpectralPrefilter::kGauss7,
                                  .channel = plan::SpectralChannel::kRgb,
                                  .coefficients = true};
  for (const plan::SpectralOptions& options : {plan::SpectralOptions{}, odd}) {
    const auto back = FromJson<plan::SpectralOptions>(JsonOf(options), "spectral");
    ASSERT_TRUE(back.ok()) << back.status();
    EXPECT_EQ(*back, options);
  }
  EXPECT_EQ(DumpJson(JsonOf(odd)), R"({"channel":"rgb","coefficients":true,"frame":64,"hop":30,)"
                                   R"("prefilter":"gauss7","window":"hann"})");
  EXPECT_EQ(plan::SpectralChannels(odd), 3);
  EXPECT_EQ(plan::SpectralChannels(plan::SpectralOptions{}), 1);
  EXPECT_EQ(plan::SpectralHalo(odd), 3);
  EXPECT_EQ(plan::SpectralHalo(plan::SpectralOptions{}), 0);
}

TEST(SpectralOptions, RefusesWhatItCannotDoAndSaysWhy) {
  const std::vector<std::pair<Json, std::string>> refused = {
      {Json::array(), "expected an object"},
      {{{"frame", 100}}, "frame"},
      {{{"frame", 16}}, "frame"},
      {{{"frame", 1024}}, "frame"},
      {{{"frame", -256}}, "frame"},
      {{{"frame", 4294967552}}, "frame"},  // 256 in 32 bits
      {{{"frame", "256"}}, "frame"},
      {{{"hop", 0}}, "hop"},
      {{{"hop", 127}}, "hop"},
      {{{"hop", 258}}, "hop"},
      {{{"frame", 64}}, "hop"},  // the hop of 128 would leave pixels out
      {{{"window", "hamming"}}, "window"},
      {{{"window", 1}}, "window"},
      {{{"prefilter", "gauss5"}}, "prefilter"},
      {{{"channel", "hsv"}}, "channel"},
      {{{"coefficients", 1}}, "coefficients"},
      {{{"windows", "hann"}}, "windows"}};
  for (const auto& [change, word] : refused) {
    Json json = change;
    if (change.is_object()) {
      json = JsonOf(plan::SpectralOptions{});
      json.update(change);
    }
    const auto options = FromJson<plan::SpectralOptions>(json, "spectral");
    ASSERT_FALSE(options.ok()) << json;
    EXPECT_EQ(options.status().code(), absl::StatusCode::kInvalidArgument);
    EXPECT_NE(MessageOf(options.status()).find(word), std::string_view::npos) << options.status();
  }
}

TEST(SpectralOptions, CountsWholeFramesOnly) {
  const plan::SpectralOptions options;
  EXPECT_EQ(plan::FramesAlong(0, options), 0);
  EXPECT_EQ(plan::FramesAlong(255, options), 0);
  EXPECT_EQ(plan::FramesAlong(256, options), 1);
  EXPECT_EQ(plan::FramesAlong(383, options), 1);
  EXPECT_EQ(plan::FramesAlong(384, options), 2);
  EXPECT_EQ(plan::FramesAlong(2220, options), 16);
}

}  // namespace
}  // namespace patchbay::ops
