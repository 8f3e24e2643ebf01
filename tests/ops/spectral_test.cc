// Frames into sums: what theory says of the spectrum, and that nothing but the frame decides it.
#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>
#include <random>
#include <thread>

#include <gtest/gtest.h>

#include "ops/spectral/spectral_frames.h"

namespace patchbay::ops {
namespace {

constexpr std::uint32_t kSeed = 4711;
constexpr SpectralLevel kLevels[] = {SpectralLevel::kPlain, SpectralLevel::kAvx2,
                                     SpectralLevel::kBest};

struct Picture {
  std::int64_t height = 0, width = 0;
  std::vector<std::uint8_t> pixels;

  Picture(std::int64_t h, std::int64_t w, std::uint8_t value = 0)
      : height(h), width(w), pixels(static_cast<std::size_t>(h * w), value) {}
  std::uint8_t& at(std::int64_t y, std::int64_t x) {
    return pixels[static_cast<std::size_t>(y * width + x)];
  }
  std::uint8_t at(std::int64_t y, std::int64_t x) const {
    return pixels[static_cast<std::size_t>(y * width + x)];
  }
  SpectralPlane Plane() const { return {pixels.data(), width, 0, 0, height, width, height, width}; }
  /// The rectangle alone, as a reader that decoded only that would give it.
  std::vector<std::uint8_t> Cut(std::int64_t top, std::int64_t left, std::int64_t h,
                                std::int64_t w) const {
    std::vector<std::uint8_t> out;
    for (std::int64_t y = top; y < top + h; ++y) {
      const auto row = pixels.begin() + y * width + left;
      out.insert(out.end(), row, row + w);
    }
    return out;
  }
};

/// Noise over soft waves: all frequencies, no two frames alike.
Picture Scene(std::int64_t height, std::int64_t width, std::uint32_t seed = kSeed) {
  std::mt19937 random(seed);
  Picture picture(height, width);
  for (std::int64_t y = 0; y < height; ++y) {
    for (std::int64_t x = 0; x < width; ++x) {
      const double wave = 120 + 60 * std::sin(static_cast<double>(y) / 17) +
                          50 * std::cos(static_cast<double>(x) / 29);
      picture.at(y, x) = static_cast<std::uint8_t>(wave + static_cast<double>(random() % 25));
    }
  }
  return picture;
}

FrameRange AllFrames(const Picture& picture, const plan::SpectralOptions& options) {
  return {0, plan::FramesAlong(picture.height, options), 0,
          plan::FramesAlong(picture.width, options)};
}

SpectralSums SumsOf(const Picture& picture, const plan::SpectralOptions& options,
                    SpectralLevel level = SpectralLevel::kBest) {
  SpectralSums sums(options);
  auto frames = SpectralFrames::Create(options, level);
  EXPECT_TRUE(frames.ok());
  const Status status = (*frames)->Add(picture.Plane(), AllFrames(picture, options), {}, sums);
  EXPECT_TRUE(status.ok()) << status;
  return sums;
}

/// dB of every coefficient of a picture that is one frame, row-major frame x (frame / 2 + 1).
std::vector<double> LevelsOf(const Picture& picture, plan::SpectralOptions options) {
  options.coefficients = true;
  const SpectralSums sums = SumsOf(picture, options);
  EXPECT_EQ(sums.frames, 1U);
  std::vector<double> levels;
  for (const std::uint64_t q : sums.coefficient_q) {
    levels.push_back(static_cast<double>(q) / kSpectralSteps);
  }
  return levels;
}

std::vector<plan::SpectralOptions> EveryKind(bool coefficients) {
  std::vector<plan::SpectralOptions> all;
  for (const int frame : {32, 64, 128, 256, 512}) {
    for (const plan::SpectralWindow window :
         {plan::SpectralWindow::kRect, plan::SpectralWindow::kHann}) {
      for (const plan::SpectralPrefilter filter :
           {plan::SpectralPrefilter::kNone, plan::SpectralPrefilter::kGauss7}) {
        all.push_back({.frame = frame,
                       .hop = frame / 2,
                       .window = window,
                       .prefilter = filter,
                       .coefficients = coefficients});
      }
    }
  }
  all.push_back({.frame = 64, .hop = 22, .coefficients = coefficients});   // columns not shared
  all.push_back({.frame = 128, .hop = 96, .coefficients = coefficients});  // shared, not a half
  return all;
}

TEST(Spectral, EveryVariantOfTheCpuGivesTheSameBits) {
  for (const plan::SpectralOptions& options : EveryKind(true)) {
    const Picture picture = Scene(options.frame + options.hop + 5, 3 * options.frame + 7);
    const SpectralSums plain = SumsOf(picture, options, SpectralLevel::kPlain);
    EXPECT_GT(plain.frames, 4U);
    EXPECT_EQ(SumsOf(picture, options, SpectralLevel::kAvx2), plain) << JsonOf(options);
    EXPECT_EQ(SumsOf(picture, options, SpectralLevel::kBest), plain) << JsonOf(options);
  }
}

/// Adds `range` from a plane that holds just what it needs.
void AddCut(const Picture& picture, const plan::SpectralOptions& options, const FrameRange& range,
            SpectralSums& sums) {
  const std::int64_t halo = plan::SpectralHalo(options), hop = options.hop;
  const std::int64_t top = std::max<std::int64_t>(range.row_begin * hop - halo, 0);
  const std::int64_t left = std::max<std::int64_t>(range.column_begin * hop - halo, 0);
  const std::int64_t bottom =
      std::min((range.row_end - 1) * hop + options.frame + halo, picture.height);
  const std::int64_t right =
      std::min((range.column_end - 1) * hop + options.frame + halo, picture.width);
  const std::vector<std::uint8_t> cut = picture.Cut(top, left, bottom - top, right - left);
  auto frames = SpectralFrames::Create(options);
  ASSERT_TRUE(frames.ok());
  const Status status = (*frames)->Add({cut.data(), right - left, top, left, bottom - top,
                                        right - left, picture.height, picture.width},
                                       range, {}, sums);
  ASSERT_TRUE(status.ok()) << status;
}

TEST(Spectral, AnySplitIntoBlocksGivesTheSameSums) {
  for (const plan::SpectralOptions& options : EveryKind(false)) {
    if (options.frame > 256) continue;
    const Picture picture =
        Scene(options.frame + 3 * options.hop + 9, options.frame + 5 * options.hop + 3);
    const SpectralSums whole = SumsOf(picture, options);
    const FrameRange all = AllFrames(picture, options);
    for (const std::int64_t rows : {1, 3}) {
      for (const std::int64_t columns : {1, 2, 5}) {
        std::vector<FrameRange> blocks;
        for (std::int64_t i = 0; i < all.row_end; i += rows) {
          for (std::int64_t j = 0; j < all.column_end; j += columns) {
            blocks.push_back(
                {i, std::min(i + rows, all.row_end), j, std::min(j + columns, all.column_end)});
          }
        }
        std::shuffle(blocks.begin(), blocks.end(), std::mt19937(kSeed));
        SpectralSums merged(options);
        for (const FrameRange& block : blocks) {
          SpectralSums part(options);
          AddCut(picture, options, block, part);
          ASSERT_TRUE(Merge(part, merged).ok());
        }
        EXPECT_EQ(merged, whole) << JsonOf(options) << " " << rows << " x " << columns;
      }
    }
  }
}

TEST(Spectral, AMaskCountsExactlyTheWantedFrames) {
  const plan::SpectralOptions options{.frame = 64, .hop = 32, .coefficients = true};
  const Picture picture = Scene(300, 420);
  const FrameRange all = AllFrames(picture, options);
  const std::int64_t columns = all.column_end;
  std::vector<std::uint8_t> wanted(static_cast<std::size_t>(all.row_end * columns));
  std::mt19937 random(kSeed);
  for (std::uint8_t& byte : wanted) byte = random() % 3 == 0 ? 200 : 0;
  auto frames = SpectralFrames::Create(options);
  ASSERT_TRUE(frames.ok());
  SpectralSums masked(options), single(options), rest(options);
  ASSERT_TRUE((*frames)->Add(picture.Plane(), all, wanted, masked).ok());
  for (std::int64_t k = 0; k < static_cast<std::int64_t>(wanted.size()); ++k) {
    SpectralSums& sums = wanted[static_cast<std::size_t>(k)] != 0 ? single : rest;
    const std::int64_t i = k / columns, j = k % columns;
    ASSERT_TRUE((*frames)->Add(picture.Plane(), {i, i + 1, j, j + 1}, {}, sums).ok());
  }
  EXPECT_EQ(masked, single);
  ASSERT_TRUE(Merge(rest, single).ok());
  EXPECT_EQ(single, SumsOf(picture, options));
}

TEST(Spectral, TwoThreadsWithTheirOwnFramesDoNotDisturbEachOther) {
  const plan::SpectralOptions options{
      .frame = 128, .hop = 64, .prefilter = plan::SpectralPrefilter::kGauss7};
  const Picture picture = Scene(400, 700);
  const SpectralSums alone = SumsOf(picture, options);
  std::vector<SpectralSums> sums(4, SpectralSums(options));
  std::vector<std::thread> threads;
  for (SpectralSums& own : sums) {
    threads.emplace_back([&] { own = SumsOf(picture, options); });
  }
  for (std::thread& thread : threads) thread.join();
  for (const SpectralSums& own : sums) EXPECT_EQ(own, alone);
}

// Counters that lose increments and frames that do not fill a batch: the totals tell.
TEST(Spectral, EveryFrameAndEveryCoefficientIsCounted) {
  for (const int frame : {32, 256}) {
    const plan::SpectralOptions options{.frame = frame, .hop = frame / 2};
    for (const std::int64_t rows : {1, 2, 3, 7}) {
      for (const std::int64_t columns : {1, 2, 5, 13}) {
        const Picture picture = Scene(frame + (rows - 1) * options.hop + options.hop - 1,
                                      frame + (columns - 1) * options.hop + rows);
        const SpectralSums sums = SumsOf(picture, options);
        const auto expected = static_cast<std::uint64_t>(rows * columns);
        EXPECT_EQ(sums.frames, expected);
        std::uint64_t total = 0;
        for (const std::uint64_t count : sums.histogram) total += count;
        EXPECT_EQ(total, expected * static_cast<std::uint64_t>(frame * frame));
        EXPECT_TRUE(Decode(Encode(sums), options).ok());
      }
    }
  }
}

TEST(Spectral, CountersMadeOfManyFramesMatchTheirParts) {
  const plan::SpectralOptions options{.frame = 32, .hop = 2, .coefficients = true};
  const Picture picture = Scene(330, 330);  // 22,500 frames: the inner counters are emptied once
  const SpectralSums sums = SumsOf(picture, options);
  ASSERT_EQ(sums.frames, 22500U);
  absl::uint128 q = 0, qq = 0;
  for (std::size_t k = 0; k < sums.coefficient_q.size(); ++k) {
    const unsigned weight = k % 17 == 0 || k % 17 == 16 ? 1 : 2;
    q += absl::uint128(sums.coefficient_q[k]) * weight;
    qq += absl::uint128(sums.coefficient_qq[k]) * weight;
  }
  EXPECT_EQ(q, sums.sum_q);
  EXPECT_EQ(qq, sums.sum_qq);
}

TEST(Spectral, AConstantImageHasNothingButItsMean) {
  for (const plan::SpectralOptions& options : EveryKind(true)) {
    for (const int value : {0, 1, 200, 255}) {
      const Picture picture(options.frame, options.frame, static_cast<std::uint8_t>(value));
      const SpectralSums sums = SumsOf(picture, options);
      for (std::size_t k = 1; k < sums.coefficient_q.size(); ++k) {
        ASSERT_EQ(sums.coefficient_q[k], 0U) << JsonOf(options) << " " << k;
      }
      const double side = options.frame,
                   hann = options.window == plan::SpectralWindow::kHann ? 4 : 1;
      const double origin = 20 * std::log10(std::max(value * side * side / hann, 1.0));
      EXPECT_NEAR(static_cast<double>(sums.coefficient_q[0]) / kSpectralSteps, origin, 1e-3);
      for (const absl::uint128 power : sums.ring_power) EXPECT_EQ(power, 0);
    }
  }
}

TEST(Spectral, AnImpulseIsFlat) {
  for (const int frame : {32, 64, 128, 256, 512}) {
    Picture picture(frame, frame);
    picture.at(frame / 3, frame / 5) = 240;
    const std::vector<double> levels = LevelsOf(picture, {.frame = frame, .hop = frame});
    for (const double level : levels) EXPECT_NEAR(level, 20 * std::log10(240.0), 1e-3);
  }
}

TEST(Spectral, ACosineIsTwoPeaks) {
  constexpr int kFrame = 256, kColumn = 24, kRow = 40, kWidth = kFrame / 2 + 1;
  Picture picture(kFrame, kFrame);
  double error = 0;  // rounding of the pixels, summed: a bound on the error of any coefficient
  for (std::int64_t y = 0; y < kFrame; ++y) {
    for (std::int64_t x = 0; x < kFrame; ++x) {
      const double phase =
          2 * std::numbers::pi * static_cast<double>(kRow * y + kColumn * x) / kFrame;
      const double value = 128 + 100 * std::cos(phase);
      picture.at(y, x) = static_cast<std::uint8_t>(std::lround(value));
      error += std::abs(value - static_cast<double>(picture.at(y, x)));
    }
  }
  const std::vector<double> levels = LevelsOf(picture, {});
  const double peak = 100.0 * kFrame * kFrame / 2;
  for (int ky = 0; ky < kFrame; ++ky) {
    for (int kx = 0; kx < kWidth; ++kx) {
      const double magnitude =
          std::pow(10.0, levels[static_cast<std::size_t>(ky * kWidth + kx)] / 20);
      if (ky == kRow && kx == kColumn) {
        EXPECT_NEAR(magnitude, peak, error);
      } else if (ky + kx > 0) {
        EXPECT_LE(magnitude, error);
      }
    }
  }
}

TEST(Spectral, PowerOfARingIsThatOfThePixels) {
  for (const int frame : {32, 64, 128, 256, 512}) {
    // A square wave: nearly all of its power lies within the circle of the rings.
    Picture picture(frame, frame);
    double mean = 0, squares = 0;
    for (std::int64_t y = 0; y < frame; ++y) {
      for (std::int64_t x = 0; x < frame; ++x) {
        const double phase = 2 * std::numbers::pi * static_cast<double>(3 * y + 5 * x) / frame;
        picture.at(y, x) = static_cast<std::uint8_t>(std::cos(phase) > 0 ? 255 : 0);
      }
    }
    for (const std::uint8_t x : picture.pixels) {
      mean += x;
      squares += static_cast<double>(x) * x;
    }
    const double n = static_cast<double>(frame) * frame;
    const double expected = n * (squares - mean * mean / n);
    const plan::SpectralOptions options{.frame = frame, .hop = frame, .coefficients = true};
    const SpectralSums sums = SumsOf(picture, options);
    double from_levels = 0, rings = 0;
    const std::size_t width = static_cast<std::size_t>(frame / 2 + 1);
    for (std::size_t k = 1; k < sums.coefficient_q.size(); ++k) {
      if (sums.coefficient_q[k] == 0) continue;
      const double weight = k % width == 0 || k % width == width - 1 ? 1 : 2;
      from_levels += weight * std::pow(10.0, static_cast<double>(sums.coefficient_q[k]) / 10240);
    }
    for (const absl::uint128 power : sums.ring_power) {
      rings += std::ldexp(static_cast<double>(power), -kRingFractionBits);
    }
    EXPECT_NEAR(from_levels / expected, 1, 1e-3) << frame;
    EXPECT_LE(rings, expected * 1.0001);
    EXPECT_GE(rings, expected * 0.8) << frame;  // the corners' share of a square wave is small
  }
}

TEST(Spectral, TheStrongestCoefficientOfTheLargestFrameFitsItsCounter) {
  for (const SpectralLevel level : kLevels) {
    const plan::SpectralOptions options{.frame = 512, .hop = 512};
    Picture stripes(512, 512 * 9);
    for (std::int64_t y = 0; y < stripes.height; ++y) {
      for (std::int64_t x = 0; x < stripes.width; ++x) {
        stripes.at(y, x) = x % 2 == 0 ? 255 : 0;
      }
    }
    const SpectralSums sums = SumsOf(stripes, options, level);
    const double magnitude = 127.5 * 512 * 512;
    const double power = std::ldexp(static_cast<double>(sums.ring_power[256]), -kRingFractionBits);
    EXPECT_NEAR(power / (9 * magnitude * magnitude), 1, 1e-5);
    for (std::size_t k = 1; k < 256; ++k) EXPECT_EQ(sums.ring_power[k], 0);
  }
}

TEST(Spectral, ManyStrongFramesDoNotOverflowARing) {
  const plan::SpectralOptions options{.frame = 512, .hop = 2};
  Picture waves(512, 512 + 2 * 63);
  for (std::int64_t y = 0; y < waves.height; ++y) {
    for (std::int64_t x = 0; x < waves.width; ++x)
      waves.at(y, x) = (x / 128 + y / 256) % 2 == 0 ? 255 : 0;
  }
  SpectralSums one_by_one(options);
  auto frames = SpectralFrames::Create(options);
  ASSERT_TRUE(frames.ok());
  for (std::int64_t j = 0; j < 64; ++j) {
    ASSERT_TRUE((*frames)->Add(waves.Plane(), {0, 1, j, j + 1}, {}, one_by_one).ok());
  }
  EXPECT_EQ(SumsOf(waves, options), one_by_one);
  EXPECT_GT(one_by_one.ring_power[2], absl::uint128(1) << 64);
}

TEST(Spectral, AShiftAroundTheFrameChangesNoLevel) {
  constexpr int kFrame = 128;
  const plan::SpectralOptions options{.frame = kFrame, .hop = kFrame};
  const Picture picture = Scene(kFrame, kFrame);
  Picture shifted(kFrame, kFrame);
  for (std::int64_t y = 0; y < kFrame; ++y) {
    for (std::int64_t x = 0; x < kFrame; ++x) {
      shifted.at((y + 37) % kFrame, (x + 90) % kFrame) = picture.at(y, x);
    }
  }
  const std::vector<double> a = LevelsOf(picture, options), b = LevelsOf(shifted, options);
  for (std::size_t k = 0; k < a.size(); ++k) {
    EXPECT_NEAR(a[k], b[k], a[k] > 20 ? 2e-3 : 2e-2) << k;
  }
}

TEST(Spectral, WhiteNoiseHasTheLevelOfItsVariance) {
  Picture picture(1024, 1024);
  std::mt19937 random(kSeed);
  for (std::uint8_t& pixel : picture.pixels) pixel = static_cast<std::uint8_t>(random() >> 24);
  const SpectralSums sums = SumsOf(picture, {});
  const double variance = (256.0 * 256.0 - 1) / 12;
  // The mean logarithm of an exponential variable lies 2.507 dB below the logarithm of its mean.
  EXPECT_NEAR(MeanDb(sums), 10 * std::log10(variance * 65536) - 2.507, 0.03);
  EXPECT_NEAR(StdDb(sums), 5.57, 0.05);
  const std::vector<double> rings = RingMeans(sums);
  EXPECT_NEAR(rings[100] / (variance * 65536), 1, 0.05);
}

TEST(Spectral, BlurLowersTheFocus) {
  const Picture picture = Scene(512, 512);
  const plan::SpectralOptions sharp, blurred{.prefilter = plan::SpectralPrefilter::kGauss7};
  EXPECT_LT(FocusDb(SumsOf(picture, blurred), blurred) + 5, FocusDb(SumsOf(picture, sharp), sharp));
}

void ExpectRefused(const SpectralPlane& plane, const FrameRange& range,
                   std::span<const std::uint8_t> wanted, SpectralSums sums) {
  const plan::SpectralOptions options{
      .frame = 64, .hop = 32, .prefilter = plan::SpectralPrefilter::kGauss7};
  auto frames = SpectralFrames::Create(options);
  ASSERT_TRUE(frames.ok());
  const SpectralSums before = sums;
  EXPECT_EQ((*frames)->Add(plane, range, wanted, sums).code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(sums, before);
}

TEST(Spectral, RefusesAPlaneThatDoesNotHoldTheFrames) {
  const plan::SpectralOptions options{
      .frame = 64, .hop = 32, .prefilter = plan::SpectralPrefilter::kGauss7};
  const SpectralSums sums(options);
  const Picture picture = Scene(200, 300);
  const SpectralPlane good = picture.Plane();
  const FrameRange all = AllFrames(picture, options), one{2, 3, 2, 3};
  constexpr std::int64_t kHuge = std::numeric_limits<std::int64_t>::max();
  ExpectRefused(good, {0, all.row_end + 1, 0, 1}, {}, sums);
  ExpectRefused(good, {0, 1, 0, all.column_end + 1}, {}, sums);
  ExpectRefused(good, {-1, 1, 0, 1}, {}, sums);
  ExpectRefused(good, {2, 1, 0, 1}, {}, sums);
  ExpectRefused(good, {0, kHuge, 0, 1}, {}, sums);
  SpectralPlane plane = good;
  plane.top = 62;  // one row of the halo is missing
  plane.height = 138;
  ExpectRefused(plane, one, {}, sums);
  plane = good;
  plane.width = 64 + 64 + 2;
  ExpectRefused(plane, one, {}, sums);
  plane.width = kHuge;
  ExpectRefused(plane, one, {}, sums);
  plane = good;
  plane.left = -5;
  ExpectRefused(plane, one, {}, sums);
  plane = good;
  plane.pixels = nullptr;
  ExpectRefused(plane, one, {}, sums);
  plane = good;
  plane.row_bytes = 299;
  ExpectRefused(plane, one, {}, sums);
  ExpectRefused(good, one, std::vector<std::uint8_t>(2, 1), sums);
  ExpectRefused(good, one, {}, SpectralSums(plan::SpectralOptions{}));
  ExpectRefused(good, one, {}, SpectralSums({.frame = 64, .hop = 32, .coefficients = true}));
}

TEST(Spectral, RefusesMoreFramesThanSumsHold) {
  const plan::SpectralOptions options{.frame = 64, .hop = 32};
  const Picture picture = Scene(64, 96);
  auto frames = SpectralFrames::Create(options);
  ASSERT_TRUE(frames.ok());
  SpectralSums sums(options);
  sums.frames = kMaxSpectralFrames - 1;
  EXPECT_EQ((*frames)->Add(picture.Plane(), {0, 1, 0, 2}, {}, sums).code(),
            absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(sums.frames, kMaxSpectralFrames - 1);
  EXPECT_TRUE((*frames)->Add(picture.Plane(), {0, 1, 0, 1}, {}, sums).ok());
}

TEST(Spectral, RefusesOptionsItCannotDo) {
  for (const plan::SpectralOptions& options :
       {plan::SpectralOptions{.frame = 96}, plan::SpectralOptions{.hop = 3},
        plan::SpectralOptions{.hop = 512},
        plan::SpectralOptions{.window = static_cast<plan::SpectralWindow>(9)},
        plan::SpectralOptions{.prefilter = static_cast<plan::SpectralPrefilter>(9)},
        plan::SpectralOptions{.channel = static_cast<plan::SpectralChannel>(9)}}) {
    EXPECT_EQ(SpectralFrames::Create(options).status().code(), absl::StatusCode::kInvalidArgument);
  }
}

TEST(Spectral, NoFramesIsNoWork) {
  const plan::SpectralOptions options;
  auto frames = SpectralFrames::Create(options);
  ASSERT_TRUE(frames.ok());
  SpectralSums sums(options);
  const Picture small = Scene(100, 100);
  EXPECT_TRUE((*frames)->Add(small.Plane(), {0, 0, 0, 0}, {}, sums).ok());
  EXPECT_EQ(sums, SpectralSums(options));
}

TEST(SpectralGrey, IsTheFormulaForEveryColour) {
  std::vector<std::uint8_t> rgb, grey(256 * 256);
  for (unsigned red = 0; red < 256; ++red) {
    rgb.clear();
    for (unsigned rest = 0; rest < 65536; ++rest) {
      rgb.push_back(static_cast<std::uint8_t>(red));
      rgb.push_back(static_cast<std::uint8_t>(rest >> 8));
      rgb.push_back(static_cast<std::uint8_t>(rest));
    }
    GreyOfRgb(rgb.data(), 65536, grey.data());
    for (unsigned rest = 0; rest < 65536; ++rest) {
      const unsigned sum = 9798 * red + 19235 * (rest >> 8) + 3735 * (rest & 255) + 16384;
      ASSERT_EQ(grey[rest], sum >> 15) << red << " " << rest;
    }
  }
}

TEST(SpectralGrey, AnyLengthWritesThatManyPixelsAndNoMore) {
  std::mt19937 random(kSeed);
  std::vector<std::uint8_t> rgb(3 * 300);
  for (std::uint8_t& byte : rgb) byte = static_cast<std::uint8_t>(random());
  for (std::size_t n = 0; n <= 300; ++n) {
    // Exactly as long as they must be: a sanitizer sees any step beyond.
    const std::vector<std::uint8_t> in(rgb.begin(), rgb.begin() + static_cast<std::int64_t>(3 * n));
    std::vector<std::uint8_t> grey(n + 1, 77), planes[3];
    for (auto& plane : planes) plane.assign(n + 1, 77);
    const auto pixels = static_cast<std::int64_t>(n);
    GreyOfRgb(in.data(), pixels, grey.data());
    SplitRgb(in.data(), pixels, planes[0].data(), planes[1].data(), planes[2].data());
    EXPECT_EQ(grey[n], 77);
    for (std::size_t i = 0; i < n; ++i) {
      const unsigned sum = 9798U * rgb[3 * i] + 19235U * rgb[3 * i + 1] + 3735U * rgb[3 * i + 2];
      ASSERT_EQ(grey[i], (sum + 16384) >> 15);
      for (std::size_t c = 0; c < 3; ++c) ASSERT_EQ(planes[c][i], rgb[3 * i + c]);
    }
    for (const auto& plane : planes) EXPECT_EQ(plane[n], 77);
  }
}

}  // namespace
}  // namespace patchbay::ops
