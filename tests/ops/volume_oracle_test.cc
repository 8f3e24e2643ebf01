// Every op of volumes, and the chain of all of them, against NumPy and SciPy in double. Patches are
// cut from an image of noise as a stream cuts them: the box that the drawn transform asks for,
// patch.fill outside.
#include <cmath>
#include <cstring>

#include <gtest/gtest.h>

#include "ops/affine/affine.h"
#include "ops/chain/chain.h"
#include "ops/chain/step_lists.h"
#include "ops/ct_normalize/ct_normalize.h"
#include "ops/elastic/elastic.h"
#include "ops/flip/flip.h"
#include "ops/window/window.h"
#include "ops/zscore/body_mask.h"
#include "tests/contract/known_ops.h"
#include "tests/contract/op_contract.h"
#include "tests/ops/python_oracle.h"

namespace patchbay::ops {
namespace {

constexpr std::int16_t kFill = -1024;
const Extent kImage{48, 44, 52};

struct Op {
  std::string steps;  ///< preprocess and augment, one list
  double tolerance;   ///< tolerance of the finished values
  double sigma = 0;   ///< sigma of a gaussian_blur that the steps have
  plan::PerAxis step = {};
  Extent patch = {8, 10, 19};
  int nearest_axis = plan::kNoAxis;
};

struct VolumeCase {
  const Op* op = nullptr;
  Box box;
  DrawKey key;
  plan::VolumeFacts facts;
};

/// Tolerances: places are right to 1e-5 voxels, and noise rises by up to 2400 HU a voxel on each of
/// three axes; log2 and exp2 to 3e-7, sums of 4000 floats to 1e-6, all of values within -5..5.
std::vector<Op> Ops() {
  const std::string window = R"({"window": {"range": [-150, 250]}})";
  const std::string flat = R"({"affine": {"p": 1, "degrees": [-60, 60], "scale": [0.7, 1.4]}},
      {"elastic": {"p": 1, "points": 5, "amplitude": 1.5}})";
  const auto after_window = [&window](const std::string& step) { return window + "," + step; };
  return {
      {window, 1e-6},
      {R"({"flip": {"axes": ["z", "y", "x"]}})", 0},
      {R"({"affine": {"p": 1, "degrees": [-30, 30], "scale": [0.7, 1.4]}})", 0.1},
      {R"({"affine": {"p": 1, "degrees": [-180, 180]}}, {"flip": {"axes": ["x", "z"]}})", 0.1},
      {R"({"elastic": {"p": 1, "points": 5, "amplitude": 1.5}})", 0.1},
      {R"({"elastic": {"p": 1, "points": 6, "amplitude_mm": 1.0}})", 0.1},
      {R"({"ct_normalize": {"lower": -90, "upper": 240, "mean": 80, "std": 70}})", 2e-6},
      {after_window(R"({"zscore": {}})"), 2e-6},
      // A third of the windowed values is 0.
      {after_window(R"({"zscore": {"over": "nonzero"}})"), 2e-6},
      {after_window(R"({"percentile": {}})"), 2e-6},
      {after_window(R"({"gaussian_noise": {"p": 1, "std": [0.02, 0.1]}})"), 2e-5},
      {after_window(R"({"gaussian_blur": {"p": 1, "sigma": [0.8, 0.8]}})"), 2e-6, 0.8},
      {after_window(R"({"brightness": {"p": 1}})"), 1e-6},
      {after_window(R"({"contrast": {"p": 1}})"), 3e-6},
      {after_window(R"({"low_resolution": {"p": 1}})"), 2e-6},
      {after_window(R"({"gamma": {"p": 1}})"), 3e-6},
      {after_window(R"({"gamma": {"p": 1, "retain_stats": true}},
                       {"gamma": {"p": 0.5, "invert": true, "retain_stats": true}})"),
       2e-5},
      {R"({"flip": {"axes": ["z"]}}, {"window": {"range": [-1000, 1000]}})",
       2e-4,
       0,
       {0.7, 1.6, 1}},
      {after_window(R"({"zscore": {}}, {"flip": {"axes": ["z", "y", "x"]}},
        {"affine": {"p": 0.5, "degrees": [-30, 30], "scale": [0.7, 1.4]}},
        {"elastic": {"p": 0.5, "points": 5, "amplitude_mm": 1}},
        {"gaussian_noise": {"p": 0.5, "std": [0, 0.1]}},
        {"gaussian_blur": {"p": 1, "sigma": [0.7, 0.7]}}, {"brightness": {"p": 0.5}},
        {"contrast": {"p": 0.5}}, {"low_resolution": {"p": 0.5}},
        {"gamma": {"p": 0.5, "retain_stats": true}})"),
       3e-3, 0.7},
      {R"({"affine": {"p": 1, "degrees": [[-30, 30], [-5, 5], [90, 90]]}})", 0.1},
      // nnU-Net's separate z. No place along the axis is so near to the middle of two voxels that
      // rounding of places decides.
      {R"({"flip": {"axes": ["z", "y"]}}, {"affine": {"p": 1, "degrees": [[-30, 30], [0, 0], [0, 0]]}})",
       0.1,
       0,
       {0.7, 1.6, 1.2},
       {8, 10, 19},
       0},
      {R"({"flip": {"axes": ["z", "x"]}})", 0.1, 0, {1.6, 0.9, 0.6}, {8, 10, 19}, 2},
      // In the slice, along each axis.
      {flat, 0.1, 0, {}, {1, 10, 19}},
      {flat, 0.1, 0, {}, {8, 1, 19}},
      {flat, 0.1, 0, {}, {8, 10, 1}}};
}

StatusOr<Chain> ChainOf(const Op& op, CpuLevel level = CpuLevel::kBest) {
  ChainOptions options;
  options.patch = op.patch;
  options.kind = plan::PatchKind::kVolume;
  options.channels = 1;
  options.source_dtype = DType::kInt16;
  options.cpu_level = level;
  options.augment = *ParseJson("[" + op.steps + "]", "steps");
  return Chain::Compile(options);
}

Json AxesOf(const plan::PerAxis& v) { return {v.z, v.y, v.x}; }
Json AxesOf(const Extent& e) { return {e.z, e.y, e.x}; }

std::vector<plan::OpStep> StepsOf(const Chain& chain) {
  return plan::SortOps(Json::array(), chain.options().augment).value();
}

DrawKey KeyOfStep(const DrawKey& key, const plan::OpStep& step) {
  DrawKey own = key;
  own.op_occurrence = plan::Occurrence(step);
  return own;
}

void AddGeometry(const Chain& chain, const VolumeCase& c, Json& request) {
  const Extent& patch = chain.options().patch;
  bool mirrored[3] = {};
  request["turns"] = Json::array();
  request["points"] = 0;
  for (const plan::OpStep& step : StepsOf(chain)) {
    const DrawKey own = KeyOfStep(c.key, step);
    if (step.op->number == FlipOptions::kNumber) {
      DrawMirrors(plan::ReadOptions<FlipOptions>(step.options), own, mirrored);
    } else if (step.op->number == AffineOptions::kNumber) {
      const auto turn = DrawTurn(plan::ReadOptions<AffineOptions>(step.options), own, patch);
      if (!turn) continue;
      request["turns"].push_back({{"degrees", turn->degrees}, {"scale", turn->scale}});
    } else if (step.op->number == ElasticOptions::kNumber) {
      const auto elastic = plan::ReadOptions<ElasticOptions>(step.options);
      const auto& mm = c.facts.spacing;
      const double a = elastic.amplitude, b = elastic.amplitude_mm;
      const VolumeField field = DrawField(
          elastic, own,
          b == 0 ? plan::PerAxis{a, a, a} : plan::PerAxis{b / mm.z, b / mm.y, b / mm.x}, patch);
      request["points"] = field.points;
      request["moves"] = field.moves;
    }
  }
  request["mirrored"] = mirrored;
}

/// Adds the draws of the ops that change values to the oracle's request.
void AddDrawn(const Chain& chain, const VolumeCase& c, Json& request) {
  const auto add_whole = [&request, &c](const auto& step) {
    using Step = std::decay_t<decltype(step)>;
    if constexpr (std::is_same_v<Step, BlurStep>) {
      request["sigma"] = c.op->sigma;
    } else if constexpr (std::is_same_v<Step, ContrastStep>) {
      request["contrast"] = step.factor[0];
    } else if constexpr (std::is_same_v<Step, CoarseStep>) {
      request["coarse"] = AxesOf(step.size);
    } else if constexpr (std::is_same_v<Step, GammaStep>) {
      request["gammas"].push_back(
          {{"exponent", step.exponent[0]}, {"retain", step.retain_stats}, {"invert", step.invert}});
    }
  };
  const auto add_point = [&request](const auto& step) {
    using Step = std::decay_t<decltype(step)>;
    if constexpr (std::is_same_v<Step, PatchNoise>) {
      request["noise"] = {{"std", step.std}, {"counter", step.key.counter}, {"key", step.key.key}};
    } else if constexpr (std::is_same_v<Step, LineWithin>) {
      request["brightness"] = step.slope;
    }
  };
  for (const PatchStep& step : chain.DrawSteps({c.key, {}, c.facts})) {
    if (const auto* whole = std::get_if<WholeStep>(&step)) {
      std::visit(add_whole, whole->step);
    } else {
      VisitStep(std::get<AnyPointStep>(step), add_point);
    }
  }
}

Json RequestOf(const Chain& chain, const VolumeCase& c) {
  const PatchNoise none;
  Json request = {
      {"patch", AxesOf(chain.options().patch)},
      {"box", {c.box.z, c.box.y, c.box.x}},
      {"spacing", AxesOf(c.facts.spacing)},
      {"step", AxesOf(c.facts.step)},
      {"nearest", c.facts.nearest_axis},
      {"window", nullptr},
      {"clip", nullptr},
      {"mean", 0},
      {"std", 1},
      {"nonzero", false},
      {"clamped", false},
      {"sigma", 0},
      {"brightness", 1},
      {"contrast", 1},
      {"coarse", AxesOf(chain.options().patch)},
      {"noise", {{"std", none.std}, {"counter", none.key.counter}, {"key", none.key.key}}},
      {"gammas", Json::array()}};
  AddDrawn(chain, c, request);
  for (const plan::OpStep& step : StepsOf(chain)) {
    if (step.op->number == WindowOptions::kNumber) request["window"] = step.options["range"];
    if (step.op->needs.body) {
      request["mean"] = c.facts.mean;
      request["std"] = c.facts.std;
      request["nonzero"] = step.options.value("over", "") == "nonzero";
      request["clamped"] = step.op->name() == "percentile";
    }
    if (step.op->number != CtNormalizeOptions::kNumber) continue;
    request["clip"] = {step.options["lower"], step.options["upper"]};
    request["mean"] = step.options["mean"];
    request["std"] = step.options["std"];
  }
  AddGeometry(chain, c, request);
  return request;
}

std::vector<VolumeCase> VolumeCases(const std::vector<Op>& ops, std::uint64_t draws) {
  std::vector<VolumeCase> cases;
  for (std::uint64_t ordinal = 0; ordinal < draws; ++ordinal) {
    for (const Op& op : ops) {
      const PhiloxBlock words = Draw({5, 0, ordinal, 3, DrawStream::kPosition}, 0);
      VolumeCase c;
      c.op = &op;
      c.facts.step = op.step;
      c.facts.nearest_axis = op.nearest_axis;
      const Extent size = plan::SourceSides(op.patch, op.step);
      // Some reach past the image.
      c.box = BoxAt({static_cast<std::int64_t>(words.word[0] % 44) - 4,
                     static_cast<std::int64_t>(words.word[1] % 36) - 4,
                     static_cast<std::int64_t>(words.word[2] % 40) - 4},
                    size);
      c.key = {99, 2, ordinal, 0, DrawStream::kParameters};
      c.facts.spacing = {2.5, 0.8, 0.9};
      c.facts.mean = 0.31;
      c.facts.std = 0.22;
      cases.push_back(c);
    }
  }
  return cases;
}

/// A box of the image, fill outside, as a source of voxels that touch.
std::vector<std::int16_t> CutOut(const std::vector<std::int16_t>& image, const Box& box) {
  std::vector<std::int16_t> out;
  for (std::int64_t z = box.z; z < box.z + box.depth; ++z) {
    for (std::int64_t y = box.y; y < box.y + box.height; ++y) {
      for (std::int64_t x = box.x; x < box.x + box.width; ++x) {
        const Point at{z, y, x};
        out.push_back(at.Inside(kImage) ? image[static_cast<std::size_t>(IndexOf(kImage, at))]
                                        : kFill);
      }
    }
  }
  return out;
}

void ExpectVolumeClose(const VolumeCase& c, const std::vector<std::int16_t>& image,
                       const double* expected) {
  const auto chain = ChainOf(*c.op);
  ASSERT_TRUE(chain.ok()) << chain.status();
  const Box box = chain->SourceBox(c.box, c.key, c.facts);
  std::vector<std::int16_t> source = CutOut(image, box);
  const TensorView view =
      ContiguousView<4>(reinterpret_cast<std::byte*>(source.data()), DType::kInt16,
                        {box.depth, box.height, box.width, std::int64_t{1}});
  std::vector<std::byte> out(chain->patch_bytes()), scratch;
  const Status made = chain->Run(view, c.key, out, scratch, nullptr, &c.facts);
  ASSERT_TRUE(made.ok()) << made;
  double worst = 0;
  for (std::size_t i = 0; i < out.size() / sizeof(float); ++i) {
    float value;
    std::memcpy(&value, out.data() + i * sizeof value, sizeof value);
    worst = std::max(worst, std::isfinite(value) ? std::abs(value - expected[i]) : INFINITY);
  }
  EXPECT_LE(worst, c.op->tolerance) << c.op->steps << " ordinal " << c.key.ordinal;
}

class VolumeOracle : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!oracle_.missing().empty()) GTEST_SKIP() << oracle_.missing();
  }

  template <typename T>
  std::vector<T> Read(const std::string& name) const {
    const std::string text = oracle_.Read(name);
    std::vector<T> values(text.size() / sizeof(T));
    std::memcpy(values.data(), text.data(), values.size() * sizeof(T));
    return values;
  }

  const PythonOracle oracle_{PATCHBAY_VOLUME_ORACLE, "numpy, scipy"};
};

TEST_F(VolumeOracle, NumPyAndSciPyMakeTheSamePatches) {
  const std::vector<Op> ops = Ops();
  const std::vector<VolumeCase> cases = VolumeCases(ops, 200);
  Json request = {{"shape", AxesOf(kImage)}, {"cases", Json::array()}, {"bodies", Json::array()}};
  for (const VolumeCase& c : cases) {
    const auto chain = ChainOf(*c.op);
    ASSERT_TRUE(chain.ok()) << chain.status();
    request["cases"].push_back(RequestOf(*chain, c));
  }
  oracle_.Ask(request);
  if (HasFatalFailure()) return;
  const auto image = Read<std::int16_t>("image.raw");
  const auto expected = Read<double>("expected.raw");
  std::size_t at = 0;
  for (const VolumeCase& c : cases) {
    const auto voxels = static_cast<std::size_t>(c.op->patch.Pixels());
    ASSERT_LE(at + voxels, expected.size());
    ExpectVolumeClose(c, image, expected.data() + at);
    if (HasFatalFailure()) return;
    at += voxels;
  }
  EXPECT_EQ(at, expected.size());
}

TEST_F(VolumeOracle, SciPyFindsTheSameBodies) {
  std::vector<Extent> shapes;
  Json request = {{"shape", {1, 1, 1}}, {"cases", Json::array()}, {"bodies", Json::array()}};
  for (std::int64_t seed = 0; seed < 200; ++seed) {
    shapes.push_back({1 + seed % 9, 1 + seed * 7 % 23, 1 + seed * 5 % 31});
    request["bodies"].push_back({AxesOf(shapes.back()), seed});
  }
  request["cases"].push_back(RequestOf(*ChainOf(Ops()[0]), VolumeCases({Ops()[0]}, 1)[0]));
  request["shape"] = AxesOf(kImage);
  oracle_.Ask(request);
  if (HasFatalFailure()) return;
  const auto bytes = Read<std::uint8_t>("body.raw");
  const std::uint8_t* at = bytes.data();
  std::size_t bodies = 0;
  for (const Extent& shape : shapes) {
    const auto voxels = static_cast<std::size_t>(shape.Pixels());
    std::vector<std::int16_t> hu(voxels);
    std::memcpy(hu.data(), at, voxels * 2);
    at += voxels * 2;
    const std::vector<std::uint8_t> expected(at, at + voxels);
    at += voxels;
    ASSERT_EQ(BodyMask(hu, shape).value(), expected) << shape.ToString();
    bodies += std::count(expected.begin(), expected.end(), 1) > 0 ? 1 : 0;
  }
  EXPECT_GT(bodies, 50u) << "masks that are all air test nothing";
}

}  // namespace
}  // namespace patchbay::ops
