// spectral on a GPU: its passes run by the CPU, thread after thread, against the CPU's op and a
// transform in double; what batches take; and, where there is a GPU, the device itself.
#include "ops/spectral/spectral_device.h"

#include <algorithm>
#include <cmath>
#include <complex>
#include <numbers>
#include <set>

#include <gtest/gtest.h>

#include "runtime/format/json/described.h"
#include "tests/contract/op_contract.h"
#include "tests/ops/spectral_emulation.h"

namespace patchbay::ops {
namespace {

/// A plane of tissue-like values: smooth shapes, edges and noise. `kind` 1 is noise, 2 is constant
/// but for one corner.
struct TissuePicture {
  std::int64_t height, width;
  std::vector<std::uint8_t> pixels;

  TissuePicture(std::int64_t h, std::int64_t w, int kind = 0, std::uint64_t seed = 1)
      : height(h), width(w) {
    const auto noise = NoiseBytes(static_cast<std::size_t>(h * w), DType::kUint8, seed);
    for (std::int64_t y = 0; y < h; ++y) {
      for (std::int64_t x = 0; x < w; ++x) {
        const int n = std::to_integer<int>(noise[static_cast<std::size_t>(y * w + x)]);
        const double dy = static_cast<double>(y), dx = static_cast<double>(x);
        int value = 235;
        if (kind == 0) {
          const double wave = std::sin(dy / 41) * std::sin(dx / 23) + std::sin((dx + 2 * dy) / 7);
          value = (wave > 0.3 ? 165 : 190) + static_cast<int>(9 * wave) + n % 40;
        } else if (kind == 1) {
          value = n;
        } else if (y < 300 && x < 300) {
          value = 200 + n % 8;
        }
        pixels.push_back(static_cast<std::uint8_t>(std::clamp(value, 0, 255)));
      }
    }
  }
  SpectralPlane plane() const { return {pixels.data(), width, 0, 0, height, width, height, width}; }
  FrameRange Frames(const plan::SpectralOptions& o) const {
    return {0, plan::FramesAlong(height, o), 0, plan::FramesAlong(width, o)};
  }
};

std::vector<plan::SpectralOptions> Variants() {
  std::vector<plan::SpectralOptions> all;
  for (const auto window : {plan::SpectralWindow::kRect, plan::SpectralWindow::kHann}) {
    for (const auto filter : {plan::SpectralPrefilter::kNone, plan::SpectralPrefilter::kGauss7}) {
      all.push_back({.window = window, .prefilter = filter});
    }
  }
  return all;
}

std::string TextOf(const plan::SpectralOptions& o) { return DumpJson(JsonOf(o)); }

SpectralSums Counted(SpectralFrames& frames, const plan::SpectralOptions& options,
                     const SpectralPlane& plane, const FrameRange& range,
                     std::span<const std::uint8_t> wanted = {}) {
  SpectralSums sums(options);
  const Status added = frames.Add(plane, range, wanted, sums);
  EXPECT_TRUE(added.ok()) << added;
  EXPECT_TRUE(frames.Finish().ok());
  return sums;
}

std::unique_ptr<SpectralFrames> Cpu(const plan::SpectralOptions& options) {
  auto made = SpectralFrames::Create(options);
  EXPECT_TRUE(made.ok()) << made.status();
  return std::move(*made);
}

double HistogramDistance(const SpectralSums& a, const SpectralSums& b) {
  double distance = 0;
  for (std::size_t i = 0; i < a.histogram.size(); ++i) {
    distance += std::abs(static_cast<double>(a.histogram[i]) - static_cast<double>(b.histogram[i]));
  }
  return distance / (static_cast<double>(a.frames) * 65'536);
}

void ExpectSumsClose(const SpectralSums& made, const SpectralSums& expected) {
  ASSERT_EQ(made.frames, expected.frames);
  EXPECT_NEAR(MeanDb(made), MeanDb(expected), 1e-3);
  EXPECT_NEAR(StdDb(made), StdDb(expected), 1e-3);
  EXPECT_LE(HistogramDistance(made, expected), 1e-3);
  std::uint64_t counted = 0;
  for (const std::uint64_t n : made.histogram) counted += n;
  EXPECT_EQ(counted, made.frames * 65'536) << "increments were lost";
  const auto rings = RingMeans(made), wanted = RingMeans(expected);
  for (std::size_t k = 1; k < rings.size(); ++k) {
    EXPECT_NEAR(rings[k], wanted[k], 1e-4 * wanted[k] + 1e-3) << "ring " << k;
  }
}

using Wide = std::complex<double>;

/// In place, by halves; n is a power of two.
void Transform(Wide* z, std::size_t n, std::size_t step) {
  if (n == 1) return;
  std::vector<Wide> even(n / 2), odd(n / 2);
  for (std::size_t i = 0; i < n / 2; ++i) {
    even[i] = z[2 * i * step];
    odd[i] = z[(2 * i + 1) * step];
  }
  Transform(even.data(), n / 2, 1);
  Transform(odd.data(), n / 2, 1);
  for (std::size_t k = 0; k < n / 2; ++k) {
    const Wide turned = odd[k] * std::polar(1.0, -2 * std::numbers::pi * static_cast<double>(k) /
                                                     static_cast<double>(n));
    z[k * step] = even[k] + turned;
    z[(k + n / 2) * step] = even[k] - turned;
  }
}

/// The levels in dB of the frame at (top, left), by the definition, in double: 256 x 129.
std::vector<double> LevelsInDouble(const TissuePicture& picture,
                                   const plan::SpectralOptions& options, std::int64_t top,
                                   std::int64_t left) {
  const auto at = [&](std::int64_t y, std::int64_t x) {
    const auto mirrored = [](std::int64_t i, std::int64_t n) {
      return i < 0 ? -i : i >= n ? 2 * n - 2 - i : i;
    };
    const std::int64_t row = mirrored(y, picture.height), column = mirrored(x, picture.width);
    return static_cast<double>(
        picture.pixels[static_cast<std::size_t>(row * picture.width + column)]);
  };
  double weight[7] = {1};
  if (options.prefilter == plan::SpectralPrefilter::kGauss7) {
    double sum = 0;
    for (int k = -3; k <= 3; ++k) sum += weight[k + 3] = std::exp(-k * k / 4.5);
    for (double& w : weight) w /= sum;
  }
  const int radius = options.prefilter == plan::SpectralPrefilter::kGauss7 ? 3 : 0;
  std::vector<Wide> x(65'536);
  double mean = 0;
  for (std::int64_t y = 0; y < 256; ++y) {
    for (std::int64_t c = 0; c < 256; ++c) {
      double value = 0;
      for (int v = -radius; v <= radius; ++v) {
        for (int u = -radius; u <= radius; ++u) {
          value += weight[v + radius] * weight[u + radius] * at(top + y + v, left + c + u);
        }
      }
      x[static_cast<std::size_t>(256 * y + c)] = value;
      mean += value / 65'536;
    }
  }
  Wide origin = 0;
  const auto window = [&](std::size_t n) {
    if (options.window == plan::SpectralWindow::kRect) return 1.0;
    return 0.5 - 0.5 * std::cos(2 * std::numbers::pi * static_cast<double>(n) / 256);
  };
  for (std::size_t i = 0; i < x.size(); ++i) {
    const double w = window(i / 256) * window(i % 256);
    origin += x[i] * w;
    x[i] = (x[i] - mean) * w;
  }
  for (std::size_t y = 0; y < 256; ++y) Transform(&x[256 * y], 256, 1);
  for (std::size_t c = 0; c < 256; ++c) Transform(&x[c], 256, 256);
  x[0] = origin;
  std::vector<double> levels;
  for (std::size_t y = 0; y < 256; ++y) {
    for (std::size_t c = 0; c < 129; ++c) {
      levels.push_back(20 * std::log10(std::max(std::abs(x[256 * y + c]), 1.0)));
    }
  }
  return levels;
}

/// The errors in dB of every coefficient of some frames, sorted.
std::vector<double> ErrorsOf(SpectralFrames& frames, const plan::SpectralOptions& options,
                             const TissuePicture& picture) {
  std::vector<double> errors;
  for (const auto& [i, j] : std::vector<std::pair<int, int>>{{0, 0}, {1, 1}, {0, 1}}) {
    const SpectralSums sums = Counted(frames, options, picture.plane(), {i, i + 1, j, j + 1});
    const auto levels = LevelsInDouble(picture, options, 128 * i, 128 * j);
    for (std::size_t k = 0; k < levels.size(); ++k) {
      const auto q = static_cast<double>(sums.coefficient_q[k]);
      EXPECT_EQ(sums.coefficient_qq[k], sums.coefficient_q[k] * sums.coefficient_q[k]);
      errors.push_back(std::abs(q / 1024 - levels[k]));
    }
  }
  std::sort(errors.begin(), errors.end());
  return errors;
}

TEST(SpectralPasses, EveryCoefficientIsThatOfATransformInDouble) {
  for (plan::SpectralOptions options : Variants()) {
    options.coefficients = true;
    for (const int kind : {0, 1}) {
      SCOPED_TRACE(StrCat(TextOf(options), " kind ", kind));
      const TissuePicture picture(400, 420, kind);
      EmulatedSpectralFrames frames(options);
      const auto errors = ErrorsOf(frames, options, picture);
      const auto cpu_errors = ErrorsOf(*Cpu(options), options, picture);
      ASSERT_EQ(errors.size(), 3u * 256 * 129);
      const std::size_t most = errors.size() * 999 / 1000;
      EXPECT_LE(errors[most], 0.01);
      EXPECT_LE(errors.back(), 0.1);
      EXPECT_LE(errors[most], 1.25 * cpu_errors[most]) << "worse than the CPU";
    }
  }
}

TEST(SpectralPasses, CountWhatTheCpuCounts) {
  for (const plan::SpectralOptions& options : Variants()) {
    for (const int kind : {0, 1, 2}) {
      SCOPED_TRACE(StrCat(TextOf(options), " kind ", kind));
      const TissuePicture picture(700, 1'400, kind);
      EmulatedSpectralFrames frames(options);
      const FrameRange all = picture.Frames(options);
      ExpectSumsClose(Counted(frames, options, picture.plane(), all),
                      Counted(*Cpu(options), options, picture.plane(), all));
    }
  }
}

TEST(SpectralPasses, TheSumsDoNotDependOnHowFramesAreDealtOut) {
  for (plan::SpectralOptions options : Variants()) {
    options.coefficients = true;
    SCOPED_TRACE(TextOf(options));
    const TissuePicture picture(800, 900);
    const FrameRange all = picture.Frames(options);
    EmulatedSpectralFrames frames(options, 1), others(options, 7);
    const SpectralSums whole = Counted(frames, options, picture.plane(), all);
    EXPECT_EQ(Counted(others, options, picture.plane(), all), whole);
    SpectralSums parts(options);
    for (std::int64_t i = all.row_begin; i < all.row_end; ++i) {
      for (const auto& [from, to] :
           {std::pair<std::int64_t, std::int64_t>{0, 3}, {3, all.column_end}}) {
        // Only the pixels that these frames need, as a strip holds them.
        const std::int64_t halo = plan::SpectralHalo(options);
        const std::int64_t top = std::max<std::int64_t>(i * 128 - halo, 0);
        const std::int64_t bottom = std::min(i * 128 + 256 + halo, picture.height);
        SpectralPlane strip = picture.plane();
        strip.pixels += top * picture.width;
        strip.top = top;
        strip.height = bottom - top;
        ASSERT_TRUE(frames.Add(strip, {i, i + 1, from, to}, {}, parts).ok());
      }
    }
    EXPECT_EQ(parts, whole);
  }
}

TEST(SpectralPasses, ThreadsOfABlockDoNotDependOnTheirOrderBetweenBarriers) {
  for (plan::SpectralOptions options : Variants()) {
    options.coefficients = true;
    SCOPED_TRACE(TextOf(options));
    const TissuePicture picture(520, 1'500);
    const FrameRange all = picture.Frames(options);
    EmulatedSpectralFrames frames(options);
    const SpectralSums expected = Counted(frames, options, picture.plane(), all);
    for (const int stride : {255, 37}) {  // backwards; scattered
      EmulatedSpectralFrames others(options, 2, stride);
      EXPECT_EQ(Counted(others, options, picture.plane(), all), expected) << stride;
    }
  }
}

TEST(SpectralPasses, AnyHopIsCounted) {
  for (const int hop : {2, 30, 64, 100, 256}) {
    plan::SpectralOptions options{.hop = hop, .prefilter = plan::SpectralPrefilter::kGauss7};
    SCOPED_TRACE(TextOf(options));
    const TissuePicture picture(hop == 2 ? 264 : 600, hop == 2 ? 300 : 900, 1);
    EmulatedSpectralFrames frames(options);
    const FrameRange all = picture.Frames(options);
    ExpectSumsClose(Counted(frames, options, picture.plane(), all),
                    Counted(*Cpu(options), options, picture.plane(), all));
  }
}

TEST(SpectralPasses, FramesThatAreNotWantedAreNotCounted) {
  const plan::SpectralOptions options{.coefficients = true};
  const TissuePicture picture(900, 1'700);
  const FrameRange all = picture.Frames(options);
  const std::int64_t columns = all.column_end;
  std::vector<std::uint8_t> wanted(static_cast<std::size_t>(all.row_end * columns));
  EmulatedSpectralFrames frames(options);
  SpectralSums one_by_one(options);
  for (std::size_t i = 3; i < wanted.size(); i += 1 + i % 5) {
    wanted[i] = 1;
    const auto row = static_cast<std::int64_t>(i) / columns;
    const auto column = static_cast<std::int64_t>(i) % columns;
    ASSERT_TRUE(
        frames.Add(picture.plane(), {row, row + 1, column, column + 1}, {}, one_by_one).ok());
  }
  const SpectralSums made = Counted(frames, options, picture.plane(), all, wanted);
  EXPECT_GT(made.frames, 10u);
  EXPECT_EQ(made, one_by_one);
  std::fill(wanted.begin(), wanted.end(), std::uint8_t{0});
  EXPECT_EQ(Counted(frames, options, picture.plane(), all, wanted), SpectralSums(options));
}

TEST(SpectralPasses, InterleavedPixelsCountAsTheirPlanes) {
  const TissuePicture red(300, 500, 0), green(300, 500, 1), blue(300, 500, 0, 9);
  std::vector<std::uint8_t> rgb;
  for (std::size_t i = 0; i < red.pixels.size(); ++i) {
    rgb.insert(rgb.end(), {red.pixels[i], green.pixels[i], blue.pixels[i]});
  }
  const SpectralPlane block = {rgb.data(), 1'500, 0, 0, 300, 500, 300, 500};
  for (const plan::SpectralChannel channel :
       {plan::SpectralChannel::kGrey, plan::SpectralChannel::kRgb}) {
    const plan::SpectralOptions options{.prefilter = plan::SpectralPrefilter::kGauss7,
                                        .channel = channel};
    EmulatedSpectralFrames frames(options);
    std::vector<SpectralSums> made(static_cast<std::size_t>(plan::SpectralChannels(options)),
                                   SpectralSums(options));
    const FrameRange all = red.Frames(options);
    ASSERT_TRUE(frames.AddRgb(block, all, {}, made).ok());
    // The base class takes the block apart on the host.
    std::vector<SpectralSums> expected(made.size(), SpectralSums(options));
    ASSERT_TRUE(frames.SpectralFrames::AddRgb(block, all, {}, expected).ok());
    EXPECT_EQ(made, expected);
    EXPECT_EQ(made[0].frames, 2u);
  }
}

TEST(SpectralPasses, AConstantFrameIsItsMeanAndNothingElse) {
  for (const plan::SpectralOptions& options : Variants()) {
    SCOPED_TRACE(TextOf(options));
    TissuePicture picture(256, 256);
    std::fill(picture.pixels.begin(), picture.pixels.end(), std::uint8_t{200});
    EmulatedSpectralFrames frames(options);
    const SpectralSums sums = Counted(frames, options, picture.plane(), {0, 1, 0, 1});
    const double weights = options.window == plan::SpectralWindow::kRect ? 65'536 : 16'384;
    const double mean_db = 20 * std::log10(200 * weights);
    EXPECT_NEAR(MeanDb(sums), mean_db / 65'536, 1e-6);
    EXPECT_EQ(sums.histogram[0], 65'535u);
    EXPECT_EQ(sums.histogram[static_cast<std::size_t>(mean_db * 4)], 1u);
  }
}

TEST(SpectralBatches, TakeEveryFrameOnceAndBoundTheirMemory) {
  const plan::SpectralOptions options{.prefilter = plan::SpectralPrefilter::kGauss7};
  const FrameRange all = {3, 60, 5, 300};
  const SpectralPlane plane = {nullptr, 0, 0, 0, 8'192, 40'000, 8'192, 40'000};
  std::set<std::pair<std::int64_t, std::int64_t>> seen;
  for (const FrameRange& part : SplitFrames(all, options)) {
    const SpectralBatch batch = MakeBatch(part, all, {}, plane, options);
    EXPECT_LE(batch.rows, kBatchRows);
    EXPECT_LE(batch.columns, kBatchColumns);
    EXPECT_LE(batch.height, kBatchRows + 6);
    for (const std::uint32_t frame : batch.wanted) {
      const std::int64_t i = part.row_begin + (frame >> 16);
      const std::int64_t j = part.column_begin + (frame & 0xFFFF);
      EXPECT_TRUE(seen.insert({i, j}).second);
      EXPECT_LE(batch.top, std::max<std::int64_t>(i * 128 - 3, 0));
      EXPECT_GE(batch.left + batch.width, std::min<std::int64_t>(j * 128 + 259, 40'000));
    }
  }
  EXPECT_EQ(seen.size(), static_cast<std::size_t>((60 - 3) * (300 - 5)));
  EXPECT_EQ(*seen.begin(), (std::pair<std::int64_t, std::int64_t>{3, 5}));
}

TEST(SpectralBatches, MakeOnlyStripsThatWantedFramesLieIn) {
  const plan::SpectralOptions options;
  const FrameRange all = {0, 9, 0, 64};
  const SpectralPlane plane = {nullptr, 0, 0, 0, 1'280, 8'320, 1'280, 8'320};
  std::vector<std::uint8_t> wanted(9 * 64);
  wanted[2 * 64 + 17] = 1;  // frame row 2: pixel rows 256 to 511; columns in groups of 8
  const SpectralBatch batch = MakeBatch(all, all, wanted, plane, options);
  ASSERT_EQ(batch.strips.size(), 32u);
  EXPECT_EQ(batch.strips.front(), 32u * 8 + 2);
  EXPECT_EQ(batch.strips.back(), 63u * 8 + 2);
  EXPECT_EQ(MakeBatch(all, all, {}, plane, options).strips.size(), 160u * 8);
}

TEST(SpectralBatches, EveryCoefficientOfARingIsAddedUpOnce) {
  const auto tables = std::make_unique<SpectralTables>(plan::SpectralOptions{});
  std::vector<std::int64_t> counts(129);
  for (int tile = 0; tile < spectral_passes::kTiles; ++tile) {
    std::set<std::pair<int, int>> seen;
    for (int t = 0; t < 256; ++t) {
      const auto& rings = tables->rings;
      for (int i = 0; i < rings.count[tile][t]; ++i) {
        const int entry = rings.entry[tile][i][t];
        EXPECT_TRUE(seen.insert({entry / 16, entry % 16}).second);
        if (tile == spectral_passes::kEdgeTile && entry % 16 != 0) continue;  // other frames
        const bool once = tile == spectral_passes::kEdgeTile || (tile == 0 && entry % 16 == 0);
        counts[rings.ring[tile][t]] += once ? 1 : 2;
      }
    }
  }
  counts[0] = 1;  // the mean, which has no ring
  EXPECT_EQ(counts, RingCounts(256));
}

TEST(SpectralBatches, TheTallysHalvesMakeWholes) {
  const plan::SpectralOptions options;
  SpectralSums sums(options);
  spectral_passes::GpuTally tally{};
  tally.sum_q = 7;
  tally.sum_qq_low = ~std::uint64_t{0};
  tally.sum_qq_high = std::uint64_t{1} << 40;
  tally.ring_low[128] = 5;
  tally.ring_high[128] = std::uint64_t{3} << 40;
  tally.histogram[639] = 11;
  AddTally(tally, 2, {}, {}, sums);
  AddTally(tally, 2, {}, {}, sums);
  EXPECT_EQ(sums.frames, 4u);
  EXPECT_EQ(sums.sum_q, absl::uint128(14));
  EXPECT_EQ(sums.sum_qq, 2 * ((absl::uint128(1) << 72) + ~std::uint64_t{0}));
  EXPECT_EQ(sums.ring_power[128], 2 * ((absl::uint128(3) << 72) + 5));
  EXPECT_EQ(sums.histogram[639], 22u);
}

TEST(SpectralBatches, RefuseBlocksThatLackPixels) {
  const plan::SpectralOptions options{.prefilter = plan::SpectralPrefilter::kGauss7};
  const TissuePicture picture(700, 900);
  EmulatedSpectralFrames frames(options);
  SpectralSums sums(options);
  const auto refused = [&](const SpectralPlane& plane, const FrameRange& range,
                           std::span<const std::uint8_t> wanted = {}) {
    return frames.Add(plane, range, wanted, sums).code() == absl::StatusCode::kInvalidArgument;
  };
  const SpectralPlane whole = picture.plane();
  EXPECT_FALSE(refused(whole, {1, 2, 1, 2}));
  SpectralPlane part = whole;
  part.top = 128;  // the rows of frame row 1, without the filter's margin above
  part.height = 300;
  part.pixels += 128 * 900;
  EXPECT_TRUE(refused(part, {1, 2, 0, 1}));
  part.top = 125;
  EXPECT_FALSE(refused(part, {1, 2, 0, 1}));
  part = whole;
  part.row_bytes = 899;
  EXPECT_TRUE(refused(part, {0, 1, 0, 1}));
  part = whole;
  part.pixels = nullptr;
  EXPECT_TRUE(refused(part, {0, 1, 0, 1}));
  part = whole;
  part.width = 1'000;
  EXPECT_TRUE(refused(part, {0, 1, 0, 1}));
  EXPECT_TRUE(refused(whole, {0, 5, 0, 1}));
  EXPECT_TRUE(refused(whole, {-1, 1, 0, 1}));
  EXPECT_TRUE(refused(whole, {1, 0, 0, 1}));
  const std::vector<std::uint8_t> short_list(3);
  EXPECT_TRUE(refused(whole, {0, 2, 0, 2}, short_list));
  EXPECT_EQ(sums.frames, 2u) << "a refused block was counted";
  EXPECT_TRUE(frames.Add(whole, {2, 2, 0, 3}, {}, sums).ok());
}

TEST(SpectralDevice, RefusesWhatItCannotCount) {
  EXPECT_EQ(CreateDeviceSpectralFrames({.frame = 128, .hop = 64}, 0).status().code(),
            absl::StatusCode::kUnimplemented);
  EXPECT_EQ(CreateDeviceSpectralFrames({.hop = 3}, 0).status().code(),
            absl::StatusCode::kInvalidArgument);
  EXPECT_FALSE(CreateDeviceSpectralFrames({}, 1'000).ok()) << "there is no such GPU";
}

TEST(SpectralDevice, WithoutAGpuIsAnError) {
  if (!memory::ListGpus().empty()) GTEST_SKIP() << "this machine has a GPU";
  const Status made = CreateDeviceSpectralFrames({}, 0).status();
  EXPECT_TRUE(made.code() == absl::StatusCode::kUnimplemented ||
              made.code() == absl::StatusCode::kUnavailable ||
              made.code() == absl::StatusCode::kInternal)
      << made;
}

std::unique_ptr<SpectralFrames> OnDevice(const plan::SpectralOptions& options) {
  auto made = CreateDeviceSpectralFrames(options, 0);
  EXPECT_TRUE(made.ok()) << made.status();
  return std::move(*made);
}

TEST(SpectralOnGpu, HasTheBitsOfTheEmulation) {
  PB_NEED_GPU();
  for (plan::SpectralOptions options : Variants()) {
    options.coefficients = true;
    for (const int kind : {0, 1, 2}) {
      SCOPED_TRACE(StrCat(TextOf(options), " kind ", kind));
      const TissuePicture picture =
          kind == 0 ? TissuePicture(1'400, 1'300, kind) : TissuePicture(700, 600, kind);
      const FrameRange all = picture.Frames(options);
      EmulatedSpectralFrames emulated(options);
      EXPECT_EQ(Counted(*OnDevice(options), options, picture.plane(), all),
                Counted(emulated, options, picture.plane(), all));
    }
  }
}

TEST(SpectralOnGpu, CountsEveryFrameOfALargeImageWhateverItsBlocks) {
  PB_NEED_GPU();
  for (const plan::SpectralOptions& options : Variants()) {
    SCOPED_TRACE(TextOf(options));
    const TissuePicture picture(1'500, 9'000);  // more than one batch down and across
    const FrameRange all = picture.Frames(options);
    const auto frames = OnDevice(options);
    const SpectralSums whole = Counted(*frames, options, picture.plane(), all);
    ExpectSumsClose(whole, Counted(*Cpu(options), options, picture.plane(), all));
    SpectralSums parts(options), other(options);
    for (std::int64_t i = 0; i < all.row_end; ++i) {
      ASSERT_TRUE(frames->Add(picture.plane(), {i, i + 1, 0, 31}, {}, parts).ok());
      ASSERT_TRUE(frames->Add(picture.plane(), {i, i + 1, 31, all.column_end}, {}, parts).ok());
      ASSERT_TRUE(frames->Add(picture.plane(), {i, i + 1, 0, 1}, {}, other).ok());
    }
    EXPECT_EQ(parts.frames, 0u) << "counted before Finish";
    ASSERT_TRUE(frames->Finish().ok());
    EXPECT_EQ(parts, whole);
    EXPECT_EQ(other.frames, static_cast<std::uint64_t>(all.row_end));
  }
}

TEST(SpectralOnGpu, TakesInterleavedPixelsAndOnlyWantedFrames) {
  PB_NEED_GPU();
  const TissuePicture red(900, 1'200, 0), green(900, 1'200, 1), blue(900, 1'200, 0, 9);
  std::vector<std::uint8_t> rgb;
  for (std::size_t i = 0; i < red.pixels.size(); ++i) {
    rgb.insert(rgb.end(), {red.pixels[i], green.pixels[i], blue.pixels[i]});
  }
  const SpectralPlane block = {rgb.data(), 3'600, 0, 0, 900, 1'200, 900, 1'200};
  for (const plan::SpectralChannel channel :
       {plan::SpectralChannel::kGrey, plan::SpectralChannel::kRgb}) {
    const plan::SpectralOptions options{.channel = channel};
    const FrameRange all = red.Frames(options);
    std::vector<std::uint8_t> wanted(static_cast<std::size_t>(all.row_end * all.column_end));
    for (std::size_t i = 0; i < wanted.size(); i += 3) wanted[i] = 1;
    const auto channels = static_cast<std::size_t>(plan::SpectralChannels(options));
    std::vector<SpectralSums> made(channels, SpectralSums(options)), expected = made;
    const auto frames = OnDevice(options);
    ASSERT_TRUE(frames->AddRgb(block, all, wanted, made).ok());
    ASSERT_TRUE(frames->Finish().ok());
    EmulatedSpectralFrames emulated(options);
    ASSERT_TRUE(emulated.AddRgb(block, all, wanted, expected).ok());
    EXPECT_EQ(made, expected);
  }
}

TEST(SpectralOnGpu, RefusesAsTheCpuDoes) {
  PB_NEED_GPU();
  const plan::SpectralOptions options;
  const TissuePicture picture(300, 300);
  const auto frames = OnDevice(options);
  SpectralSums sums(options), others(plan::SpectralOptions{.frame = 128, .hop = 64});
  const auto code = [&](const SpectralPlane& plane, const FrameRange& range, SpectralSums& into) {
    return frames->Add(plane, range, {}, into).code();
  };
  EXPECT_EQ(code(picture.plane(), {0, 2, 0, 1}, sums), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(code(picture.plane(), {0, 1, 0, 1}, others), absl::StatusCode::kInvalidArgument);
  std::vector<SpectralSums> many(kMaxDeviceSums + 1, SpectralSums(options));
  for (std::size_t i = 0; i < kMaxDeviceSums; ++i) {
    EXPECT_EQ(code(picture.plane(), {0, 1, 0, 1}, many[i]), absl::StatusCode::kOk);
  }
  EXPECT_EQ(code(picture.plane(), {0, 1, 0, 1}, many.back()), absl::StatusCode::kResourceExhausted);
  ASSERT_TRUE(frames->Finish().ok());
  EXPECT_EQ(many[0].frames, 1u);
  EXPECT_EQ(code(picture.plane(), {0, 1, 0, 1}, many.back()), absl::StatusCode::kOk);
  ASSERT_TRUE(frames->Finish().ok());
  EXPECT_EQ(many.back(), many[0]) << "a counter that is used again starts at nothing";
}

}  // namespace
}  // namespace patchbay::ops
