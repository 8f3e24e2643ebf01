// spectral against NumPy in float64, on tissue and on noise: the CPU's, the passes of a GPU run by
// the CPU, and the GPU's where there is one.
#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <filesystem>

#include <gtest/gtest.h>

#include "ops/spectral/spectral_device.h"
#include "ops/spectral/spectral_frames.h"
#include "runtime/format/json/described.h"
#include "runtime/memory/gpu.h"
#include "tests/ops/python_oracle.h"
#include "tests/ops/spectral_emulation.h"

namespace patchbay::ops {
namespace {

struct Place {
  std::int64_t row, column;
};

struct SpectralCase {
  plan::SpectralOptions options;
  std::vector<Place> frames;  ///< compared coefficient by coefficient
};

struct Image {
  Json path;  ///< null for noise
  std::int64_t height, width;
};

std::vector<SpectralCase> SpectralCases(const Image& image) {
  std::vector<SpectralCase> cases;
  for (const int frame : {64, 256, 512}) {
    for (const plan::SpectralWindow window :
         {plan::SpectralWindow::kRect, plan::SpectralWindow::kHann}) {
      for (const plan::SpectralPrefilter filter :
           {plan::SpectralPrefilter::kNone, plan::SpectralPrefilter::kGauss7}) {
        SpectralCase made;
        made.options = {.frame = frame,
                        .hop = std::min(frame, 128),
                        .window = window,
                        .prefilter = filter,
                        .coefficients = true};
        const std::int64_t rows = plan::FramesAlong(image.height, made.options);
        const std::int64_t columns = plan::FramesAlong(image.width, made.options);
        for (std::int64_t i = 0; i < rows; i += std::max<std::int64_t>(1, rows / 4)) {
          made.frames.push_back({i, (i * 7) % columns});
        }
        made.frames.push_back({rows - 1, columns - 1});
        cases.push_back(made);
      }
    }
  }
  return cases;
}

Json SpectralRequest(const Image& image, const std::vector<SpectralCase>& cases) {
  Json request = {{"image", image.path},
                  {"height", image.height},
                  {"width", image.width},
                  {"cases", Json::array()}};
  for (const SpectralCase& c : cases) {
    Json frames = Json::array();
    for (const Place& place : c.frames) frames.push_back({place.row, place.column});
    request["cases"].push_back({{"frame", c.options.frame},
                                {"hop", c.options.hop},
                                {"window", NameOf(c.options.window)},
                                {"prefilter", NameOf(c.options.prefilter)},
                                {"frames", frames}});
  }
  return request;
}

std::vector<std::uint8_t> ReadBytes(const PythonOracle& oracle, const std::string& name) {
  const std::string bytes = oracle.Read(name);
  return {bytes.begin(), bytes.end()};
}

SpectralPlane PlaneOf(const Image& image, const std::vector<std::uint8_t>& grey) {
  return {grey.data(), image.width, 0, 0, image.height, image.width, image.height, image.width};
}

/// L1 distance of the histograms.
double MovedIn(const SpectralSums& sums, const Json& expected) {
  double moved = 0;
  for (std::size_t i = 0; i < sums.histogram.size(); ++i) {
    moved += std::abs(static_cast<double>(sums.histogram[i]) - expected[i].get<double>());
  }
  return moved;
}

void ExpectSameStatistics(const SpectralSums& sums, const Json& expected) {
  EXPECT_EQ(sums.frames, expected["frames"].get<std::uint64_t>());
  EXPECT_NEAR(MeanDb(sums), expected["mean_db"].get<double>(), 1e-3);
  EXPECT_NEAR(StdDb(sums), expected["std_db"].get<double>(), 1e-3);
  // On few coefficients chance alone moves more than the tolerance from one bin to the next where a
  // level is rounded to q across the bin's edge.
  const double coefficients = static_cast<double>(sums.frames) * 4 *
                              std::pow(static_cast<double>(sums.ring_power.size() - 1), 2);
  EXPECT_LE(MovedIn(sums, expected["quantised"]), 1e-3 * coefficients);
  if (coefficients > 1e7) {
    EXPECT_LE(MovedIn(sums, expected["histogram"]), 1e-3 * coefficients);
  }
  const std::vector<double> means = RingMeans(sums);
  const int frame = 2 * (static_cast<int>(means.size()) - 1);
  const std::vector<std::int64_t> counts = RingCounts(frame);
  for (std::size_t k = 1; k < means.size(); ++k) {
    const double power = expected["rings"][k].get<double>() / static_cast<double>(counts[k]);
    EXPECT_NEAR(means[k], power, 1e-3 * power + 1e-3) << "ring " << k;
  }
}

/// The implementations that can count these frames on this machine, with their names.
std::vector<std::pair<std::string, std::unique_ptr<SpectralFrames>>> Counters(
    const plan::SpectralOptions& options) {
  std::vector<std::pair<std::string, std::unique_ptr<SpectralFrames>>> made;
  auto cpu = SpectralFrames::Create(options);
  EXPECT_TRUE(cpu.ok()) << cpu.status();
  made.emplace_back("cpu", std::move(*cpu));
  if (options.frame != kDeviceSpectralFrame) return made;
  made.emplace_back("passes of a gpu", std::make_unique<EmulatedSpectralFrames>(options));
  if (memory::ListGpus().empty()) return made;
  auto gpu = CreateDeviceSpectralFrames(options, 0);
  EXPECT_TRUE(gpu.ok()) << gpu.status();
  if (gpu.ok()) made.emplace_back("gpu", std::move(*gpu));
  return made;
}

/// Every coefficient of every named frame, each counted on its own.
void ExpectSameCoefficients(const SpectralCase& c, SpectralFrames& frames,
                            const SpectralPlane& plane, const std::vector<std::uint8_t>& raw) {
  const std::size_t each =
      static_cast<std::size_t>(c.options.frame) * static_cast<std::size_t>(c.options.frame / 2 + 1);
  ASSERT_EQ(raw.size(), c.frames.size() * each * sizeof(double));
  std::vector<double> errors;
  for (std::size_t i = 0; i < c.frames.size(); ++i) {
    const Place& at = c.frames[i];
    SpectralSums sums(c.options);
    ASSERT_TRUE(frames.Add(plane, {at.row, at.row + 1, at.column, at.column + 1}, {}, sums).ok());
    ASSERT_TRUE(frames.Finish().ok());
    for (std::size_t k = 0; k < each; ++k) {
      double level = 0;
      std::memcpy(&level, raw.data() + (i * each + k) * sizeof level, sizeof level);
      errors.push_back(
          std::abs(static_cast<double>(sums.coefficient_q[k]) / kSpectralSteps - level));
    }
  }
  std::sort(errors.begin(), errors.end());
  // The rounding error of float grows with the frame, and shows where the prefilter leaves almost
  // no signal.
  const bool largest = c.options.frame == plan::kMaxSpectralFrame;
  EXPECT_LE(errors.back(), largest ? 0.3 : 0.1);
  EXPECT_LE(errors[errors.size() - 1 - errors.size() / 1000], largest ? 0.02 : 0.01);
}

void ExpectSpectraOfNumpy(const Image& image) {
  const PythonOracle oracle(PATCHBAY_SPECTRAL_ORACLE, "numpy, PIL, tifffile");
  if (!oracle.missing().empty()) GTEST_SKIP() << oracle.missing();
  const std::vector<SpectralCase> cases = SpectralCases(image);
  oracle.Ask(SpectralRequest(image, cases));
  const std::vector<std::uint8_t> rgb = ReadBytes(oracle, "rgb.raw");
  std::vector<std::uint8_t> grey(rgb.size() / 3);
  GreyOfRgb(rgb.data(), static_cast<std::int64_t>(grey.size()), grey.data());
  ASSERT_EQ(grey, ReadBytes(oracle, "grey.raw"));
  const SpectralPlane plane = PlaneOf(image, grey);
  for (std::size_t i = 0; i < cases.size(); ++i) {
    SCOPED_TRACE(DumpJson(JsonOf(cases[i].options)));
    const Json expected = oracle.ReadJson(StrCat(i, ".json"));
    ASSERT_FALSE(expected.is_null());
    plan::SpectralOptions options = cases[i].options;
    options.coefficients = false;
    const FrameRange all{0, plan::FramesAlong(image.height, options), 0,
                         plan::FramesAlong(image.width, options)};
    for (const auto& [name, frames] : Counters(options)) {
      SCOPED_TRACE(name);
      SpectralSums sums(options);
      ASSERT_TRUE(frames->Add(plane, all, {}, sums).ok());
      ASSERT_TRUE(frames->Finish().ok());
      ExpectSameStatistics(sums, expected);
    }
    const std::vector<std::uint8_t> raw = ReadBytes(oracle, StrCat(i, ".raw"));
    for (const auto& [name, frames] : Counters(cases[i].options)) {
      SCOPED_TRACE(name);
      ExpectSameCoefficients(cases[i], *frames, plane, raw);
    }
  }
}

TEST(SpectralOracle, EqualsNumpyOnStainedTissue) {
  const char* data = std::getenv("PATCHBAY_TEST_DATA");
  const std::string path = StrCat(data == nullptr ? "" : data, "/wsi/CMU-1-Small-Region.svs");
  if (!std::filesystem::exists(path)) GTEST_SKIP() << "no PATCHBAY_TEST_DATA with wsi/";
  ExpectSpectraOfNumpy({path, 2963, 1107});
}

TEST(SpectralOracle, EqualsNumpyOnNoise) { ExpectSpectraOfNumpy({nullptr, 517, 801}); }

}  // namespace
}  // namespace patchbay::ops
