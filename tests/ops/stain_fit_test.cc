// Histograms that merge, and stain fits against NumPy, against numbers that others published, and
// of images that have none.
#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <map>

#include <gtest/gtest.h>

#include "ops/stain_normalize/fit_stains.h"
#include "runtime/core/hash.h"
#include "runtime/core/random.h"
#include "runtime/core/strings.h"
#include "tests/ops/python_oracle.h"

namespace patchbay::ops {
namespace {

using plan::StainFallback;
using plan::StainFit;
using Pixels = std::vector<std::uint8_t>;

ConstTensorView PixelsView(const Pixels& pixels, std::int64_t width) {
  const auto height = static_cast<std::int64_t>(pixels.size()) / (3 * width);
  return ContiguousView<3>(reinterpret_cast<std::byte*>(const_cast<std::uint8_t*>(pixels.data())),
                           DType::kUint8, {height, width, 3});
}

StainHistogram HistogramOf(const Pixels& pixels, std::int64_t width, int bits) {
  StainCounter counter(bits);
  EXPECT_TRUE(counter.Add(PixelsView(pixels, width)).ok());
  return counter.Take();
}

Pixels NoisePixels(std::size_t pixels, std::uint64_t seed) {
  Pixels out;
  for (std::uint64_t block = 0; out.size() < 3 * pixels; ++block) {
    for (const std::uint32_t word : Draw(DrawKey{seed, 0, 0, 0, {}}, block).word) {
      for (int shift = 0; shift < 32; shift += 8) {
        out.push_back(static_cast<std::uint8_t>(word >> shift));
      }
    }
  }
  out.resize(3 * pixels);
  return out;
}

TEST(StainHistogram, SumOfTilesInAnyOrderIsThatOfTheWhole) {
  const Pixels all = NoisePixels(64 * 60, 1);
  const StainHistogram whole = HistogramOf(all, 64, 5);
  EXPECT_EQ(whole.Pixels(), 64u * 60);
  StainCounter merged(5);
  for (const std::size_t part : {2, 0, 1}) {
    const Pixels rows(all.begin() + static_cast<std::ptrdiff_t>(part * 20 * 192),
                      all.begin() + static_cast<std::ptrdiff_t>((part + 1) * 20 * 192));
    const auto parsed = ParseHistogram(
        AsText(std::span<const std::byte>(SerialiseHistogram(HistogramOf(rows, 64, 5)))));
    ASSERT_TRUE(parsed.ok()) << parsed.status();
    ASSERT_TRUE(merged.Add(*parsed).ok());
  }
  EXPECT_EQ(merged.Take(), whole);
}

TEST(StainHistogram, EveryColourIsCountedWhereItBelongs) {
  const Pixels pixels = {255, 0, 128, 1, 0, 129, 254, 1, 128, 7, 7, 7, 7, 7, 7};
  const StainHistogram histogram = HistogramOf(pixels, 5, 7);
  ASSERT_EQ(histogram.entries.size(), 3u);
  EXPECT_EQ(histogram.entries[0], (StainHistogram::Entry{64, 1}));
  EXPECT_EQ(histogram.entries[1], (StainHistogram::Entry{(3u << 14) | (3u << 7) | 3u, 2}));
  EXPECT_EQ(histogram.entries[2], (StainHistogram::Entry{(127u << 14) | 64u, 2}));
  EXPECT_EQ(histogram.IntensityOf(127), 254.5);
}

TEST(StainHistogram, RowsOfAnyLengthAndBitsAreCountedPixelByPixel) {
  for (int bits = 1; bits <= kMaxColourBits; ++bits) {
    for (const std::size_t width : {1, 7, 9, 10, 18, 31, 64}) {
      SCOPED_TRACE(StrCat(bits, " bits, ", width, " wide"));
      Pixels pixels = NoisePixels(3 * width, static_cast<std::uint64_t>(bits));
      std::fill_n(pixels.begin(), width, pixels.back());  // a run of greys, and one of a colour
      for (std::size_t i = 3; i < 3 * width; ++i) pixels[3 * width + i] = pixels[3 * width + i - 3];
      std::map<std::uint32_t, std::uint64_t> expected;
      for (std::size_t i = 0; i < pixels.size(); i += 3) {
        std::uint32_t colour = 0;
        for (std::size_t c = 0; c < 3; ++c) colour = colour << bits | pixels[i + c] >> (8 - bits);
        ++expected[colour];
      }
      const StainHistogram histogram = HistogramOf(pixels, static_cast<std::int64_t>(width), bits);
      ASSERT_EQ(histogram.entries.size(), expected.size());
      for (const StainHistogram::Entry& entry : histogram.entries) {
        ASSERT_EQ(entry.pixels, expected[entry.colour]) << entry.colour;
      }
    }
  }
}

TEST(StainHistogram, DamagedBytesAreRefused) {
  const auto bytes = SerialiseHistogram(HistogramOf(NoisePixels(500, 2), 50, 5));
  const std::string text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  ASSERT_TRUE(ParseHistogram(text).ok());
  EXPECT_TRUE(absl::IsDataLoss(ParseHistogram("").status()));
  EXPECT_TRUE(absl::IsDataLoss(ParseHistogram("PBSH1").status()));
  EXPECT_TRUE(absl::IsDataLoss(ParseHistogram(text + "x").status()));
  for (std::size_t size = 0; size < text.size(); size += 7) {
    EXPECT_TRUE(absl::IsDataLoss(ParseHistogram(text.substr(0, size)).status())) << size;
  }
  EXPECT_FALSE(ParseHistogram(std::string("PBSH1\x05\x01\xff\xff\xff\x01\x01", 11)).ok());
}

TEST(StainHistogram, OtherPixelsThanRgbBytesAreRefused) {
  StainCounter counter;
  std::array<std::byte, 64> bytes{};
  EXPECT_FALSE(counter.Add(ContiguousView<3>(bytes.data(), DType::kUint16, {2, 2, 3})).ok());
  EXPECT_FALSE(counter.Add(ContiguousView<3>(bytes.data(), DType::kUint8, {2, 2, 4})).ok());
  EXPECT_FALSE(counter.Add(StainHistogram{.bits = 8, .entries = {}}).ok());
}

TEST(StainFit, ImagesWithoutStainsFallBackAndSayWhy) {
  const auto fit_of = [](const Pixels& pixels) {
    return FitStains(HistogramOf(pixels, static_cast<std::int64_t>(pixels.size() / 3), 8));
  };
  const StainFit blank = fit_of(Pixels(3 * 5000, 255));
  EXPECT_EQ(blank.macenko.fallback, StainFallback::kTooFewPixels);
  EXPECT_EQ(blank.reinhard.fallback, StainFallback::kTooFewPixels);
  EXPECT_EQ(blank.macenko.stains, plan::DefaultMacenko().stains);
  EXPECT_EQ(blank.tissue_pixels, 0u);
  EXPECT_EQ(blank.pixels, 5000u);
  const StainFit dark = fit_of(Pixels(3 * 5000, 90));
  EXPECT_EQ(dark.macenko.fallback, StainFallback::kOneStain);
  EXPECT_EQ(dark.reinhard.fallback, StainFallback::kOneStain);
  Pixels grey;
  for (int i = 0; i < 3000; ++i) grey.insert(grey.end(), 3, static_cast<std::uint8_t>(i % 160));
  EXPECT_EQ(fit_of(grey).macenko.fallback, StainFallback::kOneStain);
  EXPECT_EQ(FitStains({}).macenko.fallback, StainFallback::kTooFewPixels);
}

TEST(StainFit, ShowsProgressWhileItGoesThroughManyColours) {
  const StainHistogram colours = HistogramOf(NoisePixels(300'000, 3), 1'000, kMaxColourBits);
  std::size_t shown = 0;
  const StainFit fit = FitStains(colours, {}, [&shown] { ++shown; });
  EXPECT_EQ(fit.macenko.fallback, StainFallback::kNone);
  EXPECT_GE(shown, colours.entries.size() / (1 << 16) + 4) << "the colours, then each sort";
  EXPECT_EQ(fit, FitStains(colours));
}

TEST(StainFit, KnownMixtureIsFoundAgain) {
  const plan::MacenkoFit truth = plan::DefaultMacenko();
  Pixels pixels;
  for (int h = 0; h <= 100; ++h) {
    for (int e = 0; e <= 100; ++e) {
      for (std::size_t c = 0; c < 3; ++c) {
        const double od = truth.stains[0][c] * 0.02 * h + truth.stains[1][c] * 0.01 * e;
        pixels.push_back(static_cast<std::uint8_t>(std::lround(plan::kStainWhite * std::exp(-od))));
      }
    }
  }
  const StainFit fit = FitStains(HistogramOf(pixels, 101, 8));
  ASSERT_EQ(fit.macenko.fallback, StainFallback::kNone);
  // The extreme percent of the angles lies within half a degree of the pure stains here.
  for (std::size_t s = 0; s < 2; ++s) {
    for (std::size_t c = 0; c < 3; ++c) {
      EXPECT_NEAR(fit.macenko.stains[s][c], truth.stains[s][c], 0.02) << s << c;
    }
  }
  EXPECT_NEAR(fit.macenko.max_concentrations[0], 2.0, 0.05);
  EXPECT_NEAR(fit.macenko.max_concentrations[1], 1.0, 0.05);
}

struct StainCase {
  std::string image;
  StainFitOptions options;
  Pixels pixels = {};
  std::int64_t width = 0;
  Json answer = {};
};

/// Runs NumPy over the pictures. Empty when there is no data or no NumPy.
std::vector<StainCase> Answered(std::vector<StainCase> cases) {
  const char* data = std::getenv("PATCHBAY_TEST_DATA");
  const PythonOracle oracle(PATCHBAY_STAIN_ORACLE, "numpy, PIL");
  if (data == nullptr || !oracle.missing().empty()) return {};
  Json request = Json::array();
  for (const StainCase& c : cases) {
    const std::string path = StrCat(data, "/stain/", c.image);
    if (!std::filesystem::exists(path)) return {};
    request.push_back({{"image", path},
                       {"tissue_od", c.options.tissue_od},
                       {"every_channel", c.options.every_channel},
                       {"of_all", c.options.concentrations_of_all}});
  }
  oracle.Ask(request);
  const Json answers = oracle.ReadJson("answer.json");
  for (std::size_t i = 0; i < answers.size(); ++i) {
    cases[i].answer = answers[i];
    cases[i].width = cases[i].answer["shape"][1].get<std::int64_t>();
    const std::string raw = oracle.Read(StrCat("image", i, ".raw"));
    cases[i].pixels.assign(raw.begin(), raw.end());
  }
  return cases;
}

const char* const kPictures[] = {"histolab/target.png", "histolab/source-medium.png",
                                 "torchstain/source.png", "torchstain/target.png"};
constexpr char kNoData[] = "no pictures (PATCHBAY_TEST_DATA) or no NumPy";

/// The map of a fit's colours to those of another, of one pixel, as cuCIM rounds it.
std::array<int, 3> Mapped(const plan::MacenkoFit& from, const plan::MacenkoFit& to,
                          const std::uint8_t* pixel) {
  const auto &h = from.stains[0], &e = from.stains[1];
  double cosine = 0, along[2] = {0, 0};
  for (std::size_t c = 0; c < 3; ++c) {
    const double od =
        -std::log(std::clamp<double>(pixel[c], 1, plan::kStainWhite) / plan::kStainWhite);
    cosine += h[c] * e[c];
    along[0] += h[c] * od;
    along[1] += e[c] * od;
  }
  std::array<double, 2> amount = {(along[0] - cosine * along[1]) / (1 - cosine * cosine),
                                  (along[1] - cosine * along[0]) / (1 - cosine * cosine)};
  for (std::size_t s = 0; s < 2; ++s) {
    amount[s] *= to.max_concentrations[s] / from.max_concentrations[s];
  }
  std::array<int, 3> out{};
  for (std::size_t c = 0; c < 3; ++c) {
    const double od = to.stains[0][c] * amount[0] + to.stains[1][c] * amount[1];
    out[c] = std::clamp(static_cast<int>(std::lrint(plan::kStainWhite * std::exp(-od))), 0, 255);
  }
  return out;
}

TEST(StainFitOracle, NumpyFindsTheSameInThePixelsThemselves) {
  std::vector<StainCase> cases;
  for (const char* picture : kPictures) {
    cases.push_back({picture, {}});
    if (picture != kPictures[0]) continue;
    cases.push_back(
        {picture, {.tissue_od = 0.15, .every_channel = true, .concentrations_of_all = true}});
  }
  cases = Answered(cases);
  if (cases.empty()) GTEST_SKIP() << kNoData;
  for (const StainCase& c : cases) {
    const StainFit fit = FitStains(HistogramOf(c.pixels, c.width, 8), c.options);
    EXPECT_EQ(fit.tissue_pixels, c.answer["tissue"].get<std::uint64_t>()) << c.image;
    const Json macenko = plan::ValuesOf(fit.macenko), reinhard = plan::ValuesOf(fit.reinhard);
    // Sums in another order: 1e-9 of numbers around 1 and 50.
    for (std::size_t i = 0; i < macenko.size(); ++i) {
      EXPECT_NEAR(macenko[i].get<double>(), c.answer["macenko"][i].get<double>(), 1e-9)
          << c.image << " value " << i;
    }
    for (std::size_t i = 0; i < reinhard.size(); ++i) {
      EXPECT_NEAR(reinhard[i].get<double>(), c.answer["reinhard"][i].get<double>(), 1e-8)
          << c.image << " value " << i;
    }
  }
}

TEST(StainFitOracle, SevenBitsMoveAPixelByOneGreyLevelAtMost) {
  std::vector<StainCase> cases;
  for (const char* picture : kPictures) cases.push_back({picture, {}});
  cases = Answered(cases);
  if (cases.empty()) GTEST_SKIP() << kNoData;
  for (const StainCase& c : cases) {
    const StainFit exact = FitStains(HistogramOf(c.pixels, c.width, 8));
    const StainFit coarse = FitStains(HistogramOf(c.pixels, c.width, kSlideColourBits));
    int worst = 0;
    for (std::size_t at = 0; at < c.pixels.size(); at += 3 * 31) {
      const auto a = Mapped(exact.macenko, plan::DefaultMacenko(), &c.pixels[at]);
      const auto b = Mapped(coarse.macenko, plan::DefaultMacenko(), &c.pixels[at]);
      for (std::size_t i = 0; i < 3; ++i) worst = std::max(worst, std::abs(a[i] - b[i]));
    }
    EXPECT_LE(worst, 1) << c.image;
  }
}

double DegreesBetween(const std::array<double, 3>& a, const Json& b) {
  double dot = 0, aa = 0, bb = 0;
  for (std::size_t i = 0; i < 3; ++i) {
    const double other = b[i].get<double>();
    dot += a[i] * other;
    aa += a[i] * a[i];
    bb += other * other;
  }
  return std::acos(std::min(1.0, dot / std::sqrt(aa * bb))) * 180 / M_PI;
}

using Columns = std::array<std::array<double, 3>, 3>;

/// Values that histolab publishes for two tiles: the vectors of hematoxylin, of eosin and of the
/// residual, and the target's maximal concentration of each.
constexpr Columns kHistolabTarget = {{{0.520699, 0.7606757, 0.3876146},
                                      {0.2073588, 0.8483905, 0.4870686},
                                      {0.1242305, -0.5166961, 0.847108}}};
constexpr Columns kHistolabSource = {{{0.5388396, 0.7349083, 0.4117787},
                                      {0.1261264, 0.8172188, 0.5623572},
                                      {0.1762086, -0.5763255, 0.7979971}}};
constexpr std::array<double, 3> kHistolabMost = {2.1701043, 1.2563618, 0.0523954};
const StainFitOptions kHistolab{
    .tissue_od = 0.15, .every_channel = true, .concentrations_of_all = true, .plus_one = true};

/// The largest angle between a fit's vectors and the published ones.
double DegreesFrom(const plan::MacenkoFit& fit, const Columns& published) {
  return std::max(DegreesBetween(fit.stains[0], published[0]),
                  DegreesBetween(fit.stains[1], published[1]));
}

/// With histolab's density (of I + 1, not clipped) and tissue (above 0.15 in every channel) the fit
/// of the target is the published one to the digits it is rounded to. histolab fits the source
/// in a way its numbers do not tell apart from here: 0.16 degrees are left. Its maxima are those of
/// three stains, what is neither among them, and so up to 1.5 % from those of two.
TEST(StainFitOracle, HistolabsPublishedMatricesAreReproduced) {
  const auto cases =
      Answered({{"histolab/target.png", kHistolab}, {"histolab/source-medium.png", kHistolab}});
  if (cases.empty()) GTEST_SKIP() << kNoData;
  const auto fit_of = [](const StainCase& c, const StainFitOptions& options) {
    return FitStains(HistogramOf(c.pixels, c.width, 8), options).macenko;
  };
  const plan::MacenkoFit target = fit_of(cases[0], kHistolab);
  EXPECT_LT(DegreesFrom(target, kHistolabTarget), 0.002);
  EXPECT_LT(DegreesFrom(fit_of(cases[1], kHistolab), kHistolabSource), 0.16);
  EXPECT_NEAR(target.max_concentrations[0] / kHistolabMost[0], 1, 0.015);
  EXPECT_NEAR(target.max_concentrations[1] / kHistolabMost[1], 1, 0.015);
  // Clipped densities, as in the shipped profile, make 0.25 degrees; its tissue 2.4.
  StainFitOptions clipped = kHistolab;
  clipped.plus_one = false;
  EXPECT_LT(DegreesFrom(fit_of(cases[0], clipped), kHistolabTarget), 0.25);
  EXPECT_NEAR(DegreesFrom(fit_of(cases[0], {}), kHistolabTarget), 2.36, 0.05);
}

/// Coordinates of a vector in three columns that are no orthogonal basis: Cramer's rule.
std::array<double, 3> CoordinatesIn(const Columns& columns, const std::array<double, 3>& v) {
  const auto determinant = [](const std::array<double, 3>& a, const std::array<double, 3>& b,
                              const std::array<double, 3>& c) {
    return a[0] * (b[1] * c[2] - b[2] * c[1]) - b[0] * (a[1] * c[2] - a[2] * c[1]) +
           c[0] * (a[1] * b[2] - a[2] * b[1]);
  };
  const double whole = determinant(columns[0], columns[1], columns[2]);
  return {determinant(v, columns[1], columns[2]) / whole,
          determinant(columns[0], v, columns[2]) / whole,
          determinant(columns[0], columns[1], v) / whole};
}

/// From the published matrices histolab's own picture follows within one grey level: densities of
/// I + 1, three stains of which the third is kept, values cut to whole numbers. The shipped profile
/// is 10.7 grey levels from it on average: it fits other tissue, keeps two stains, clips and
/// rounds.
TEST(StainFitOracle, HistolabsPublishedPictureIsReproduced) {
  const auto cases = Answered({{"histolab/source-medium.png", kHistolab},
                               {"histolab/expected-medium-macenko.png", kHistolab},
                               {"histolab/target.png", kHistolab}});
  if (cases.empty()) GTEST_SKIP() << kNoData;
  const Pixels &source = cases[0].pixels, &expected = cases[1].pixels;
  ASSERT_EQ(source.size(), expected.size());
  std::vector<std::array<double, 3>> amounts;
  for (std::size_t at = 0; at < source.size(); at += 3) {
    std::array<double, 3> od{};
    for (std::size_t c = 0; c < 3; ++c) od[c] = -std::log((source[at + c] + 1) / plan::kStainWhite);
    amounts.push_back(CoordinatesIn(kHistolabSource, od));
  }
  std::array<double, 3> scale{};
  for (std::size_t s = 0; s < 3; ++s) {
    std::vector<double> all;
    for (const auto& amount : amounts) all.push_back(amount[s]);
    std::sort(all.begin(), all.end());
    const double place = 0.99 * static_cast<double>(all.size() - 1);
    const auto below = static_cast<std::size_t>(place);
    const double most =
        all[below] + (place - static_cast<double>(below)) * (all[below + 1] - all[below]);
    scale[s] = kHistolabMost[s] / most;
  }
  int worst = 0;
  double shipped = 0;
  const plan::MacenkoFit from = FitStains(HistogramOf(source, cases[0].width, 8)).macenko;
  const plan::MacenkoFit to = FitStains(HistogramOf(cases[2].pixels, cases[2].width, 8)).macenko;
  for (std::size_t i = 0; i < amounts.size(); ++i) {
    const auto ours = Mapped(from, to, &source[3 * i]);
    for (std::size_t c = 0; c < 3; ++c) {
      double od = 0;
      for (std::size_t s = 0; s < 3; ++s) od += kHistolabTarget[s][c] * amounts[i][s] * scale[s];
      const int value = static_cast<int>(std::clamp(plan::kStainWhite * std::exp(-od), 0.0, 255.0));
      worst = std::max(worst, std::abs(value - expected[3 * i + c]));
      shipped += std::abs(ours[c] - expected[3 * i + c]);
    }
  }
  EXPECT_LE(worst, 1);
  EXPECT_NEAR(shipped / static_cast<double>(source.size()), 10.7, 0.1);
}

}  // namespace
}  // namespace patchbay::ops
