// Each op of a float chain against NumPy, SciPy and scikit-image in double, on noise and on stained
// tissue. The chain works in float: the tolerances say by how much it may differ, of a full scale
// of 255.
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <filesystem>

#include <gtest/gtest.h>

#include "ops/affine/affine.h"
#include "ops/chain/chain.h"
#include "ops/color_jitter/color_jitter.h"
#include "ops/elastic/elastic.h"
#include "ops/gaussian_blur/gaussian_blur.h"
#include "ops/gaussian_noise/gaussian_noise.h"
#include "tests/contract/known_ops.h"
#include "tests/contract/op_contract.h"
#include "tests/ops/python_oracle.h"

namespace patchbay::ops {
namespace {

/// The input of one run of the oracle: small patches for many draws, large ones for tissue.
struct Trial {
  Json image;  ///< path, or null for noise
  std::int64_t height, width;
  std::uint64_t draws;
};

struct FloatCase {
  Json step;
  DrawKey key;
  Json request;      ///< the chain's draws, for the oracle
  double tolerance;  ///< grey levels
};

plan::MacenkoFit ImageFit() {
  plan::MacenkoFit fit;
  fit.stains = {{{0.6442, 0.7166, 0.2669}, {0.0928, 0.9541, 0.2831}}};
  fit.max_concentrations = {1.2, 0.8};
  return fit;
}

plan::ReinhardFit ImageReinhard() { return {.mean = {61, 28, -20}, .std = {14, 9, 6}}; }

DrawKey OwnKey(const Json& step, const DrawKey& key) {
  DrawKey own = key;
  own.op_occurrence = plan::Occurrence(plan::SortOps(Json::array(), Json::array({step}))->at(0));
  return own;
}

Json OptionsOfStep(const Json& step) {
  return plan::SortOps(Json::array(), Json::array({step}))->at(0).options;
}

Json MapOf(const PlaceMap& m) { return {m.yy, m.yx, m.y0, m.xy, m.xx, m.x0}; }

/// The factors (alpha) and offsets (beta) of the stain amounts, from the words of the draw.
void AddStainDraws(const DrawKey& own, double alpha, double beta, Json& request) {
  const PhiloxBlock factors = Draw(own, 0), shifts = Draw(own, 1);
  for (int s = 0; s < 3; ++s) {
    request["alpha"].push_back(1 + alpha * (2 * double{UniformFloat(factors.word[1 + s])} - 1));
    request["beta"].push_back(beta * (2 * double{UniformFloat(shifts.word[s])} - 1));
  }
}

Json DrawnOf(const std::string& op, const Json& o, const DrawKey& own, const Trial& trial) {
  Json request = {{"op", op}};
  if (op == "affine") {
    request["map"] =
        MapOf(DrawAffine(plan::ReadOptions<AffineOptions>(o), own, trial.height, trial.width));
    request["border"] = o["border"];
  } else if (op == "elastic") {
    const PixelField field = DrawElastic(plan::ReadOptions<ElasticOptions>(o), own);
    const auto count = static_cast<std::size_t>(field.points * field.points);
    request["map"] = MapOf({});
    request["border"] = o["border"];
    request["points"] = field.points;
    request["dy"] = std::vector<float>(field.dy, field.dy + count);
    request["dx"] = std::vector<float>(field.dx, field.dx + count);
  } else if (op == "stain_normalize" && o["profile"] == "reinhard") {
    request["op"] = "reinhard";
    request["fit"] = plan::ValuesOf(ImageReinhard());
    request["reference"] = plan::ValuesOf(plan::DefaultReinhard());
  } else if (op == "stain_normalize") {
    request["fit"] = plan::ValuesOf(ImageFit());
    request["reference"] = plan::ValuesOf(plan::DefaultMacenko());
  } else if (op == "hed_jitter" || op == "stain_jitter") {
    request["reference"] = plan::ValuesOf(plan::DefaultMacenko());
    AddStainDraws(own, o["alpha"].get<double>(), o["beta"].get<double>(), request);
  } else if (op == "color_jitter") {
    constexpr const char* kNames[] = {"brightness", "contrast", "saturation", "hue"};
    const ColorJitter drawn = *DrawColorJitter(plan::ReadOptions<ColorJitterOptions>(o), own);
    for (const ColorStep step : drawn.order) {
      request["order"].push_back(kNames[static_cast<std::size_t>(step)]);
    }
    request["brightness"] = drawn.brightness;
    request["contrast"] = drawn.contrast;
    request["saturation"] = drawn.saturation;
    request["hue"] = drawn.hue;
  } else if (op == "gaussian_blur") {
    request["sigma"] = o["sigma"][0];  // a range of one value
  } else {
    const PatchNoise noise = DrawNoise(plan::ReadOptions<GaussianNoiseOptions>(o), own, 255);
    request["std"] = noise.std;
    request["counter"] = noise.key.counter;
    request["key"] = noise.key.key;
  }
  return request;
}

/// The largest amplitude that does not fold the patch, nearly.
Json ElasticStep(int points, const Trial& trial) {
  const double between =
      static_cast<double>(std::min(trial.height, trial.width) - 1) / (points - 3);
  return {{"elastic", {{"p", 1}, {"points", points}, {"amplitude", 0.45 * between}}}};
}

std::vector<FloatCase> FloatCases(const Trial& trial) {
  // Sampling: coordinates in float are within 3e-5 px at this size, and noise rises by 255 a pixel.
  // Optical density: log2 and exp2 are within 3e-7, times the matrix. L*a*b*: five powers, and
  // colours beyond sRGB, which are steep. Hue divides by the spread of
  // a pixel's channels. Noise: 1e-5 of a deviation of 20.
  const std::pair<Json, double> steps[] = {
      {Json::parse(R"({"affine": {"p": 1, "degrees": [-180, 180], "scale": [0.6, 1.7],
          "shear": [-15, 15], "translate": [0.2, 0.2]}})"),
       0.025},
      {Json::parse(R"({"affine": {"p": 1, "degrees": [-30, 30], "border": "reflect"}})"), 0.025},
      {Json::parse(R"({"affine": {"p": 1, "degrees": [-30, 30], "border": "edge"}})"), 0.025},
      {ElasticStep(8, trial), 0.025},
      {ElasticStep(5, trial), 0.025},
      {Json::parse(R"({"stain_normalize": {}})"), 2e-3},
      {Json::parse(R"({"stain_normalize": {"profile": "reinhard"}})"), 1e-2},
      {Json::parse(R"({"stain_jitter": {"p": 1, "alpha": 0.2, "beta": 0.2}})"), 2e-3},
      {Json::parse(R"({"hed_jitter": {"p": 1, "alpha": 0.2, "beta": 0.2}})"), 2e-3},
      {Json::parse(R"({"color_jitter": {"p": 1, "brightness": [0.7, 1.3], "contrast": [0.6, 1.4],
          "saturation": [0.3, 1.7], "hue": [-0.2, 0.2]}})"),
       5e-3},
      {Json::parse(R"({"gaussian_blur": {"p": 1, "sigma": [0.7, 0.7]}})"), 2e-4},
      {Json::parse(R"({"gaussian_blur": {"p": 1, "sigma": [3.3, 3.3]}})"), 2e-4},
      {Json::parse(R"({"gaussian_noise": {"p": 1, "std": [0.05, 0.1]}})"), 5e-4}};
  std::vector<FloatCase> cases;
  for (std::uint64_t ordinal = 0; ordinal < trial.draws; ++ordinal) {
    for (const auto& [step, tolerance] : steps) {
      const DrawKey key{99, 2, ordinal, 0, DrawStream::kParameters};
      const Json drawn = DrawnOf(step.begin().key(), OptionsOfStep(step), OwnKey(step, key), trial);
      cases.push_back({step, key, drawn, tolerance});
    }
  }
  return cases;
}

void ExpectFloatsClose(const FloatCase& c, const TensorView& source, const std::string& expected) {
  ChainOptions options;
  options.patch = Flat(source.shape[0], source.shape[1]);
  options.layout = PatchLayout::kNhwc;
  options.augment = Json::array({c.step});
  const auto chain = Chain::Compile(options);
  ASSERT_TRUE(chain.ok()) << chain.status();
  const plan::MacenkoFit fit = ImageFit();
  const plan::ReinhardFit reinhard = ImageReinhard();
  ImageColours colours = &fit;
  colours.reinhard = &reinhard;
  std::vector<std::byte> out(chain->patch_bytes()), scratch;
  ASSERT_TRUE(chain->Run(source, c.key, out, scratch, colours).ok());
  const std::size_t count = out.size() / sizeof(float);
  ASSERT_EQ(expected.size(), count * sizeof(double));
  double worst = 0;
  for (std::size_t i = 0; i < count; ++i) {
    float made;
    double wanted;
    std::memcpy(&made, out.data() + i * sizeof made, sizeof made);
    std::memcpy(&wanted, expected.data() + i * sizeof wanted, sizeof wanted);
    worst = std::max(worst, std::isfinite(made) ? std::abs(made - wanted) : INFINITY);
  }
  EXPECT_LE(worst, c.tolerance) << DumpJson(c.step) << " ordinal " << c.key.ordinal;
}

void ExpectPythonAgrees(const Trial& trial) {
  const PythonOracle oracle(PATCHBAY_FLOAT_ORACLE, "numpy, scipy, skimage, PIL");
  if (!oracle.missing().empty()) GTEST_SKIP() << oracle.missing();
  const std::vector<FloatCase> cases = FloatCases(trial);
  Json request = {{"image", trial.image},
                  {"height", trial.height},
                  {"width", trial.width},
                  {"cases", Json::array()}};
  for (const FloatCase& c : cases) request["cases"].push_back(c.request);
  oracle.Ask(request);
  std::string raw = oracle.Read("source.raw");
  ASSERT_EQ(raw.size(), static_cast<std::size_t>(trial.height * trial.width * 3));
  const TensorView source = ContiguousView<3>(reinterpret_cast<std::byte*>(raw.data()),
                                              DType::kUint8, {trial.height, trial.width, 3});
  for (std::size_t i = 0; i < cases.size(); ++i) {
    ExpectFloatsClose(cases[i], source, oracle.Read(StrCat(i, ".raw")));
  }
}

TEST(FloatOracle, PythonAgreesOnNoise) { ExpectPythonAgrees({nullptr, 33, 51, 200}); }

TEST(FloatOracle, PythonAgreesOnStainedTissue) {
  const char* data = std::getenv("PATCHBAY_TEST_DATA");
  const std::string folder = data != nullptr ? data : "";
  for (const char* name : {"/stain/histolab/source-medium.png", "/stain/torchstain/source.png"}) {
    const std::string image = folder + name;
    if (!std::filesystem::exists(image)) GTEST_SKIP() << "no test data at PATCHBAY_TEST_DATA";
    ExpectPythonAgrees({image, 96, 150, 3});
  }
}

}  // namespace
}  // namespace patchbay::ops
