// Chains of volumes: every width of register gives the same bits through any strides, what does
// nothing changes nothing, labels follow, and what cannot be is refused. The formulas are held
// against NumPy and SciPy by volume_oracle_test.cc.
#include <cstring>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "ops/chain/chain.h"
#include "tests/contract/op_contract.h"
#include "tests/ops/volume_steps.h"

namespace patchbay::ops {
namespace {

/// Noise with gaps between voxels, rows and slices.
struct Voxels {
  std::vector<std::byte> memory;
  TensorView view;

  Voxels(const Extent& size, DType dtype, std::int64_t gap) {
    const auto element = static_cast<std::int64_t>(SizeOf(dtype));
    view = ContiguousView<4>(nullptr, dtype, {size.z, size.y, size.x, std::int64_t{1}});
    view.stride_bytes = {};
    view.stride_bytes[3] = element;
    view.stride_bytes[2] = element * (1 + gap);
    view.stride_bytes[1] = size.x * view.stride_bytes[2] + 3 * gap * element;
    view.stride_bytes[0] = size.y * view.stride_bytes[1] + 5 * gap * element;
    memory.assign(static_cast<std::size_t>(size.z * view.stride_bytes[0]), std::byte{0x5A});
    view.data = memory.data();
    const auto noise = NoiseBytes(static_cast<std::size_t>(size.Pixels()), dtype, 3);
    for (std::int64_t i = 0; i < size.Pixels(); ++i) {
      const Point at = CellAt(size, i);
      std::memcpy(view.data + at.z * view.stride_bytes[0] + at.y * view.stride_bytes[1] +
                      at.x * view.stride_bytes[2],
                  noise.data() + i * element, SizeOf(dtype));
    }
  }
};

std::vector<std::byte> MadeVolume(const Chain& chain, const TensorView& source,
                                  const DrawKey& key) {
  constexpr std::size_t kGuard = 256;
  constexpr std::byte kMark{0xC3};
  std::vector<std::byte> memory(chain.patch_bytes() + 2 * kGuard, kMark), scratch;
  const plan::VolumeFacts facts = VolumeStepFacts();
  const Status status =
      chain.Run(source, key, std::span(memory).subspan(kGuard, chain.patch_bytes()), scratch,
                nullptr, &facts);
  EXPECT_TRUE(status.ok()) << status;
  for (std::size_t i = 0; i < kGuard; ++i) {
    EXPECT_EQ(memory[i], kMark) << "written before the output";
    EXPECT_EQ(memory[memory.size() - 1 - i], kMark) << "written behind the output";
  }
  return {memory.begin() + kGuard, memory.end() - kGuard};
}

void ExpectOneVolume(ChainOptions options, std::uint64_t ordinal) {
  std::vector<std::byte> expected;
  for (const CpuLevel level : kCpuLevels) {
    options.cpu_level = level;
    const auto chain = Chain::Compile(options);
    ASSERT_TRUE(chain.ok()) << chain.status();
    ASSERT_TRUE(chain->is_volume());
    const Extent size = chain->SourceExtent(VolumeStepKey(ordinal), VolumeStepFacts());
    const Voxels source(size, options.source_dtype, 0), gapped(size, options.source_dtype, 2);
    const auto memory = source.memory;
    const auto made = MadeVolume(*chain, source.view, VolumeStepKey(ordinal));
    if (expected.empty()) expected = made;
    ASSERT_EQ(made, expected) << chain->cpu_path();
    ASSERT_EQ(MadeVolume(*chain, gapped.view, VolumeStepKey(ordinal)), expected)
        << chain->cpu_path() << " strided";
    ASSERT_EQ(source.memory, memory) << "the input was written to";
  }
}

TEST(VolumeChain, EveryWidthOfRegisterGivesTheSameBits) {
  constexpr std::int64_t kSides[][3] = {{2, 3, 5}, {9, 7, 33}, {4, 6, 130}, {12, 16, 16}};
  std::uint64_t ordinal = 0;
  for (const auto& step : EachVolumeStep()) {
    for (const auto& side : kSides) {
      for (const DType source : kVolumeSourceTypes) {
        ++ordinal;
        SCOPED_TRACE(StrCat(step, " ", side[2], " ", NameOf(source)));
        ChainOptions options = VolumeStepOptions(step, {side[0], side[1], side[2]}, source);
        options.preprocess = *ParseJson(R"([{"window": {"range": [0, 255]}}])", "steps");
        if (step.find("window") != std::string::npos) options.preprocess = Json::array();
        options.dtype = kPatchTypes[ordinal % 4];
        // Points of an elastic lie closer than that in a patch of two slices.
        if (step.find("elastic") != std::string::npos && side[0] < 4) continue;
        ExpectOneVolume(options, ordinal);
        if (HasFatalFailure()) return;
      }
    }
  }
}

TEST(VolumeChain, WholeChainsGiveTheSameBits) {
  std::string all;
  for (const auto& step : VolumeSteps()) all += (all.empty() ? "" : ",") + step;
  for (std::uint64_t ordinal = 0; ordinal < 8; ++ordinal) {
    ExpectOneVolume(VolumeStepOptions(all, {11, 13, 37}, kVolumeSourceTypes[ordinal % 4]), ordinal);
    if (HasFatalFailure()) return;
  }
}

TEST(VolumeChain, WhatDoesNothingChangesNoBit) {
  const std::string idle =
      R"({"flip": {"horizontal": 0, "vertical": 0}}, {"affine": {"p": 1}}, {"elastic": {"p": 0, "amplitude_mm": 1}},
         {"gaussian_noise": {"p": 0}}, {"gaussian_blur": {"p": 1, "sigma": [0, 0]}},
         {"brightness": {"p": 1, "factor": [1, 1]}}, {"contrast": {"p": 1, "factor": [1, 1]}},
         {"low_resolution": {"p": 1, "zoom": [1, 1]}}, {"gamma": {"p": 0}})";
  const auto chain = Chain::Compile(VolumeStepOptions(idle, {12, 13, 14}, DType::kInt16));
  ASSERT_TRUE(chain.ok()) << chain.status();
  const Voxels source({12, 13, 14}, DType::kInt16, 0);
  ASSERT_EQ(chain->SourceBox(BoxAt({3, 4, 5}, {12, 13, 14}), VolumeStepKey(1), VolumeStepFacts()),
            BoxAt({3, 4, 5}, {12, 13, 14}));
  const auto made = MadeVolume(*chain, source.view, VolumeStepKey(1));
  for (std::size_t i = 0; i < source.memory.size() / 2; ++i) {
    std::int16_t hu;
    float value;
    std::memcpy(&hu, source.memory.data() + 2 * i, 2);
    std::memcpy(&value, made.data() + 4 * i, 4);
    ASSERT_EQ(value, static_cast<float>(hu));
  }
}

TEST(VolumeChain, NotANumberIsTheWindowsLowEnd) {
  const auto chain = Chain::Compile(
      VolumeStepOptions(R"({"window": {"range": [-10, 10]}})", {2, 2, 2}, DType::kFloat32));
  float values[] = {NAN, -INFINITY, INFINITY, -3024, 0, 10, -10, 5};
  const TensorView view = ContiguousView<4>(reinterpret_cast<std::byte*>(values), DType::kFloat32,
                                            {2, 2, 2, std::int64_t{1}});
  const auto made = MadeVolume(*chain, view, VolumeStepKey(0));
  std::vector<float> out(8);
  std::memcpy(out.data(), made.data(), 32);
  EXPECT_THAT(out, testing::ElementsAre(0, 0, 1, 0, 0.5f, 1, 0, 0.75f));
}

TEST(VolumeChain, LabelsGoWhereVoxelsGo) {
  // An image whose values are labels, sampled where nothing is between voxels but halves.
  const std::string moves =
      R"({"flip": {"axes": ["z", "y", "x"]}},
         {"affine": {"p": 1, "degrees": [-90, 90], "scale": [0.8, 1.3]}})";
  for (std::uint64_t ordinal = 0; ordinal < 20; ++ordinal) {
    for (const CpuLevel level : kCpuLevels) {
      ChainOptions options = VolumeStepOptions(moves, {10, 11, 35}, DType::kUint8);
      options.cpu_level = level;
      const auto chain = Chain::Compile(options);
      const Extent size = chain->SourceExtent(VolumeStepKey(ordinal), VolumeStepFacts());
      // Halves along x: what is sampled is more or less than the middle as the nearest label is 1
      // or 0.
      Voxels source(size, DType::kUint8, 0);
      for (std::int64_t i = 0; i < size.Pixels(); ++i) {
        source.memory[static_cast<std::size_t>(i)] =
            static_cast<std::byte>(i % size.x < size.x / 2 ? 0 : 200);
      }
      std::vector<std::uint8_t> labels(10 * 11 * 35);
      std::vector<std::byte> scratch;
      ASSERT_TRUE(
          chain->RunLabels(source.view, VolumeStepKey(ordinal), labels, scratch, VolumeStepFacts())
              .ok());
      const auto made = MadeVolume(*chain, source.view, VolumeStepKey(ordinal));
      for (std::size_t i = 0; i < labels.size(); ++i) {
        float value;
        std::memcpy(&value, made.data() + 4 * i, 4);
        if (std::abs(value - 100) > 0.1) ASSERT_EQ(labels[i], value > 100 ? 200 : 0) << i;
      }
    }
  }
}

/// Facts of an image of that many channels, and those of one channel of it.
plan::VolumeFacts FactsOfChannels(int channels) {
  plan::VolumeFacts facts = VolumeStepFacts();
  facts.step = {1, 2.2, 1.6};
  for (int c = 1; c < channels; ++c) facts.further.push_back({0.4 + 0.1 * c, 0.3 / c});
  return facts;
}
plan::VolumeFacts FactsOfChannel(const plan::VolumeFacts& all, int c) {
  plan::VolumeFacts facts = all;
  facts.mean = all.NumbersOf(c).mean;
  facts.std = all.NumbersOf(c).std;
  facts.further.clear();
  return facts;
}

/// Patches of each channel, from noise of as many channels.
std::vector<std::vector<std::byte>> MadeChannels(ChainOptions options, int channels,
                                                 const DrawKey& key) {
  options.channels = channels;
  const auto chain = Chain::Compile(options);
  EXPECT_TRUE(chain.ok()) << chain.status();
  const plan::VolumeFacts facts = FactsOfChannels(channels);
  const Extent size = chain->SourceExtent(key, facts);
  // A channel's noise does not depend on how many there are.
  std::vector<std::byte> noise;
  const DType source = options.source_dtype;
  const std::size_t element = SizeOf(source);
  noise.resize(static_cast<std::size_t>(size.Pixels() * channels) * element);
  const TensorView view = ContiguousView<4>(
      noise.data(), source, {size.z, size.y, size.x, static_cast<std::int64_t>(channels)});
  for (int c = 0; c < channels; ++c) {
    const auto own = NoiseBytes(static_cast<std::size_t>(size.Pixels()), source,
                                3 + static_cast<std::uint64_t>(c));
    for (std::size_t i = 0; i < own.size() / element; ++i) {
      std::memcpy(
          noise.data() +
              (i * static_cast<std::size_t>(channels) + static_cast<std::size_t>(c)) * element,
          own.data() + i * element, element);
    }
  }
  std::vector<std::byte> made(chain->patch_bytes()), scratch;
  const Status run = chain->Run(view, key, made, scratch, {}, &facts);
  EXPECT_TRUE(run.ok()) << run;
  std::vector<std::vector<std::byte>> each;
  const std::size_t bytes = made.size() / static_cast<std::size_t>(channels);
  for (std::size_t c = 0; c < static_cast<std::size_t>(channels); ++c) {
    each.emplace_back(made.begin() + static_cast<std::ptrdiff_t>(c * bytes),
                      made.begin() + static_cast<std::ptrdiff_t>((c + 1) * bytes));
  }
  return each;
}

/// The patch of channel `c` of that noise as the only channel of an image.
std::vector<std::byte> MadeAlone(ChainOptions options, const plan::VolumeFacts& all, int c,
                                 const DrawKey& key) {
  options.channels = 1;
  const auto chain = Chain::Compile(options);
  EXPECT_TRUE(chain.ok()) << chain.status();
  const plan::VolumeFacts facts = FactsOfChannel(all, c);
  const Extent size = chain->SourceExtent(key, facts);
  auto noise = NoiseBytes(static_cast<std::size_t>(size.Pixels()), options.source_dtype,
                          3 + static_cast<std::uint64_t>(c));
  const TensorView view = ContiguousView<4>(noise.data(), options.source_dtype,
                                            {size.z, size.y, size.x, std::int64_t{1}});
  std::vector<std::byte> made(chain->patch_bytes()), scratch;
  const Status run = chain->Run(view, key, made, scratch, {}, &facts);
  EXPECT_TRUE(run.ok()) << run;
  return made;
}

constexpr char kMovesAndNeighbours[] =
    R"({"flip": {"axes": ["z", "y", "x"]}},
       {"affine": {"p": 1, "degrees": [-40, 40], "scale": [0.7, 1.4]}},
       {"gaussian_blur": {"p": 1, "sigma": [0.4, 1.2]}}, {"low_resolution": {"p": 1}},
       {"brightness": {"p": 1, "factor": [1.2, 1.2]}}, {"contrast": {"p": 1, "factor": [0.8, 0.8]}},
       {"gamma": {"p": 1, "gamma": [1.3, 1.3], "retain_stats": true}},)";

TEST(VolumeChain, AChannelIsMadeAsIfItWereAlone) {
  // But for noise, whose numbers are drawn by channel, and factors, which are one number here.
  for (const char* normaliser :
       {R"({"zscore": {"over": "image"}})", R"({"zscore": {"over": "nonzero"}})",
        R"({"percentile": {}})", R"({"window": {"range": [20, 180]}}, {"zscore": {}})"}) {
    for (const DType source : kVolumeSourceTypes) {
      for (const CpuLevel level : kCpuLevels) {
        SCOPED_TRACE(StrCat(normaliser, " ", NameOf(source)));
        ChainOptions options =
            VolumeStepOptions(StrCat(kMovesAndNeighbours, normaliser), {6, 13, 37}, source);
        options.cpu_level = level;
        options.kind = plan::PatchKind::kResampled;
        const auto made = MadeChannels(options, 14, VolumeStepKey(7));
        for (int c = 0; c < 14; ++c) {
          ASSERT_EQ(made[static_cast<std::size_t>(c)],
                    MadeAlone(options, FactsOfChannels(14), c, VolumeStepKey(7)))
              << c;
        }
      }
    }
  }
}

TEST(VolumeChain, FactorsAreDrawnForEachChannelWhateverTheirNumber) {
  for (const char* step :
       {R"({"brightness": {"p": 1}})", R"({"contrast": {"p": 1}})",
        R"({"gamma": {"p": 1, "retain_stats": true}})", R"({"gamma": {"p": 1, "invert": true}})"}) {
    SCOPED_TRACE(step);
    const ChainOptions options = VolumeStepOptions(step, {3, 5, 37}, DType::kInt16);
    const auto seven = MadeChannels(options, 7, VolumeStepKey(7)),
               two = MadeChannels(options, 2, VolumeStepKey(7));
    EXPECT_EQ(seven[0], MadeAlone(options, FactsOfChannels(7), 0, VolumeStepKey(7)));
    EXPECT_EQ(seven[0], two[0]);
    EXPECT_EQ(seven[1], two[1]);
    EXPECT_NE(seven[1], MadeAlone(options, FactsOfChannels(7), 1, VolumeStepKey(7)))
        << "its own factor";
  }
}

TEST(VolumeChain, PatchesOfOneSliceMayHaveSeveralChannelsOfAVolume) {
  ChainOptions options =
      VolumeStepOptions(R"({"zscore": {"over": "image"}})", {1, 16, 16}, DType::kInt16);
  options.images_have_depth = true;
  const auto made = MadeChannels(options, 3, VolumeStepKey(2));
  for (int c = 0; c < 3; ++c) {
    EXPECT_EQ(made[static_cast<std::size_t>(c)],
              MadeAlone(options, FactsOfChannels(3), c, VolumeStepKey(2)));
  }
}

std::string Refusal(const std::string& steps, const Extent& patch = {8, 16, 16}, int channels = 1) {
  ChainOptions options = VolumeStepOptions(steps, patch, DType::kInt16);
  options.channels = channels;
  return std::string(Chain::Compile(options).status().message());
}

TEST(VolumeChain, WhatCannotBeIsRefusedByKey) {
  using testing::HasSubstr;
  const std::string window = R"({"window": {"range": [-150, 250]}},)";
  EXPECT_THAT(Refusal(R"({"window": {"range": [250, -150]}})"),
              HasSubstr("the low bound is not below the high one"));
  EXPECT_THAT(Refusal(window + R"({"window": {"range": [0, 1]}})"),
              HasSubstr("key 'augment[1].window': named twice"));
  EXPECT_THAT(Refusal(R"({"ct_normalize": {}})"), HasSubstr("`patchbay lock`"));
  EXPECT_THAT(Refusal(R"({"ct_normalize": {"lower": 5, "upper": 5, "mean": 0, "std": 1}})"),
              HasSubstr("lower: 5 is not below upper, 5"));
  EXPECT_THAT(Refusal(R"({"ct_normalize": {"lower": 1, "upper": 5, "mean": 0, "std": 0}})"),
              HasSubstr("std must be above 0"));
  EXPECT_THAT(Refusal(R"({"zscore": {}}, {"normalize": {}})"),
              HasSubstr("excludes augment[0].zscore: at most one of"));
  EXPECT_THAT(Refusal(R"({"percentile": {}}, {"zscore": {}})"),
              HasSubstr("at most one of ct_normalize, percentile, zscore and normalize"));
  EXPECT_THAT(Refusal(R"({"zscore": {"over": "mask"}})"), HasSubstr("over: mask needs `mask`"));
  EXPECT_THAT(Refusal(R"({"zscore": {"mask": "brain"}})"),
              HasSubstr("mask: 'brain': it goes with `over: mask`"));
  EXPECT_THAT(Refusal(R"({"percentile": {"range": [50, 50]}})"),
              HasSubstr("range: [50, 50]: the low percentile is not below the high one"));
  EXPECT_THAT(Refusal(window + R"({"crop": {"margin": [1, 1]}})"),
              HasSubstr("key 'augment[1].crop': for 2-D images"));
  EXPECT_THAT(Refusal(window + R"({"hed_jitter": {}})"),
              HasSubstr("key 'augment[1].hed_jitter': for 2-D images"));
  EXPECT_THAT(Refusal(R"({"flip": {"axes": ["q"]}})"), HasSubstr("'q' is not an axis"));
  EXPECT_THAT(Refusal(R"({"flip": {"axes": ["z", "z"]}})"), HasSubstr("'z' twice"));
  EXPECT_THAT(Refusal(R"({"flip": {"axes": ["z"], "vertical": 0}})"),
              HasSubstr("axes excludes horizontal and vertical"));
  EXPECT_THAT(Refusal(R"({"affine": {"shear": [0, 5]}})"), HasSubstr("shear: for 2-D images only"));
  EXPECT_THAT(Refusal(R"({"affine": {"translate": [0.1, 0]}})"),
              HasSubstr("translate: for 2-D images only"));
  EXPECT_THAT(Refusal(R"({"affine": {"border": "edge"}})"),
              HasSubstr("border: for 2-D images only"));
  EXPECT_THAT(Refusal(R"({"elastic": {}})"), HasSubstr("one of amplitude (px) and amplitude_mm"));
  EXPECT_THAT(Refusal(R"({"elastic": {"amplitude": 1, "amplitude_mm": 1}})"),
              HasSubstr("one of amplitude (px) and amplitude_mm"));
  EXPECT_THAT(Refusal(R"({"elastic": {"amplitude": 2}})"), HasSubstr("folds the patch"));
  EXPECT_THAT(Refusal(window + R"({"normalize": {"mean": [1, 2]}})"),
              HasSubstr("2 means and 1 stds for 1 channels"));
  EXPECT_EQ(Refusal(window + R"({"normalize": {"mean": [1, 2, 3]}})", {16, 16, 16}, 3), "");
  EXPECT_THAT(Refusal(R"({"window": {"range": [0, 1]}})", {1, 16, 16}, 3),
              HasSubstr("key 'augment[0].window': needs images of one channel; these have 3"));
}

TEST(VolumeChain, ImagesThatCannotGiveAPatchAreRefused) {
  const auto elastic = Chain::Compile(VolumeStepOptions(
      R"({"elastic": {"points": 5, "amplitude_mm": 4}})", {16, 32, 32}, DType::kInt16));
  ASSERT_TRUE(elastic.ok()) << elastic.status();
  plan::VolumeFacts facts;
  facts.spacing = {2, 2, 2};
  EXPECT_TRUE(elastic->CheckImage(facts).ok()) << elastic->CheckImage(facts);
  facts.spacing = {0.5, 2, 2};
  EXPECT_THAT(std::string(elastic->CheckImage(facts).message()), testing::HasSubstr("folds"));
  const auto affine = Chain::Compile(VolumeStepOptions(
      R"({"affine": {"degrees": [-90, 90], "scale": [0.1, 1]}})", {256, 256, 256}, DType::kInt16));
  EXPECT_THAT(std::string(affine->CheckImage({}).message()),
              testing::HasSubstr("voxels read, turned and scaled: more than"));
  std::vector<std::byte> out(affine->patch_bytes()), scratch;
  const Voxels source({2, 2, 2}, DType::kInt16, 0);
  EXPECT_THAT(std::string(affine->Run(source.view, VolumeStepKey(0), out, scratch).message()),
              testing::HasSubstr("spacing and statistics are not known"));
  const plan::VolumeFacts known;
  EXPECT_THAT(
      std::string(
          affine->Run(source.view, VolumeStepKey(0), out, scratch, nullptr, &known).message()),
      testing::HasSubstr("expected a source of"));
}

TEST(VolumeChain, IsMadeWithoutFactsOfItsImageOnlyWhereNoOpNeedsThem) {
  const Extent patch = {4, 8, 8};
  const Voxels source(patch, DType::kInt16, 0);
  const std::string window = R"({"window": {"range": [-100, 100]}})";
  struct Case {
    std::string steps;
    bool needs_facts;
  };
  for (const Case& one :
       {Case{window, false}, Case{R"({"flip": {"axes": ["x"]}})", false},
        Case{R"({"zscore": {}})", true}, Case{window + R"(, {"zscore": {}})", true},
        Case{R"({"elastic": {"points": 5, "amplitude_mm": 0.1}})", true}}) {
    SCOPED_TRACE(one.steps);
    const auto chain = Chain::Compile(VolumeStepOptions(one.steps, patch, DType::kInt16));
    ASSERT_TRUE(chain.ok()) << chain.status();
    std::vector<std::byte> out(chain->patch_bytes()), scratch;
    const Status made = chain->Run(source.view, VolumeStepKey(0), out, scratch);
    EXPECT_EQ(made.ok(), !one.needs_facts) << made;
    EXPECT_EQ(chain->needs_facts(), one.needs_facts);
    if (!made.ok()) {
      EXPECT_THAT(std::string(made.message()),
                  testing::HasSubstr("spacing and statistics are not known"));
    }
  }
}

TEST(VolumeChain, ARotationKeepsMillimetres) {
  // A quarter turn about x of voxels twice as deep as they are high: z of the source runs half as
  // far.
  const auto chain = Chain::Compile(
      VolumeStepOptions(R"({"affine": {"p": 1, "degrees": [90, 90]}})", {9, 9, 9}, DType::kInt16));
  plan::VolumeFacts facts;
  facts.spacing = {2, 1, 1};
  const Box box = chain->SourceBox(BoxAt({0, 0, 0}, {9, 9, 9}), VolumeStepKey(0), facts);
  // About x, then y, then z by 90 degrees each: z takes x, y takes y, x takes z, up to sign.
  EXPECT_LE(box.depth, 9 / 2 + 3);
  EXPECT_GE(box.width, 16);
}

}  // namespace
}  // namespace patchbay::ops
