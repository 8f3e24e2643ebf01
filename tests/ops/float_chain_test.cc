// Chains that work in float: every width of register gives the same bits, identity parameters
// change none, labels follow, and impossible requests are refused. The formulas are held against
// NumPy, SciPy and scikit-image by float_oracle_test.cc.
#include <array>
#include <cmath>
#include <cstring>

#include <gtest/gtest.h>

#include "ops/chain/chain.h"
#include "ops/chain/step_lists.h"
#include "ops/stain_jitter/stain_jitter.h"
#include "ops/stain_normalize/stain_normalize.h"
#include "tests/contract/known_ops.h"
#include "tests/contract/op_contract.h"
#include "tests/ops/float_steps.h"

namespace patchbay::ops {
namespace {

Spaced SourceOfType(const Chain& chain, DType dtype, std::int64_t row_gap, std::int64_t pixel_gap) {
  const std::array<std::int64_t, 3> shape = {chain.source_extent().y, chain.source_extent().x,
                                             chain.options().channels};
  Spaced source(dtype, shape, row_gap, pixel_gap);
  source.Fill(NoiseBytes(static_cast<std::size_t>(shape[0] * shape[1] * shape[2]), dtype, 11));
  return source;
}

std::vector<std::byte> RunGuarded(const Chain& chain, const ConstTensorView& source,
                                  const DrawKey& key) {
  constexpr std::size_t kGuard = 256;
  constexpr std::byte kMark{0xC3};
  const plan::MacenkoFit fit = OtherFit();
  const plan::ReinhardFit reinhard = OtherReinhard();
  ImageColours colours = &fit;
  colours.reinhard = &reinhard;
  std::vector<std::byte> memory(chain.patch_bytes() + 2 * kGuard, kMark), scratch;
  const Status status = chain.Run(
      source, key, std::span(memory).subspan(kGuard, chain.patch_bytes()), scratch, colours);
  EXPECT_TRUE(status.ok()) << status;
  for (std::size_t i = 0; i < kGuard; ++i) {
    EXPECT_EQ(memory[i], kMark) << "written before the output";
    EXPECT_EQ(memory[memory.size() - 1 - i], kMark) << "written behind the output";
  }
  return {memory.begin() + kGuard, memory.end() - kGuard};
}

/// Scalar, AVX2 and AVX-512, through strides too.
void ExpectOneResult(ChainOptions options, std::uint64_t ordinal, std::int64_t row_gap,
                     std::int64_t pixel_gap) {
  const DrawKey key{7, 2, ordinal, 0, DrawStream::kParameters};
  std::vector<std::byte> expected;
  for (const CpuLevel level : kCpuLevels) {
    options.cpu_level = level;
    const auto chain = Chain::Compile(options);
    ASSERT_TRUE(chain.ok()) << chain.status();
    const Spaced source = SourceOfType(*chain, options.source_dtype, 0, 0);
    const Spaced gapped = SourceOfType(*chain, options.source_dtype, row_gap, pixel_gap);
    const auto made = RunGuarded(*chain, source.view, key);
    if (expected.empty()) expected = made;
    ASSERT_EQ(made, expected) << chain->cpu_path();
    ASSERT_EQ(RunGuarded(*chain, gapped.view, key), expected) << chain->cpu_path() << " strided";
  }
}

TEST(FloatChain, EachOpGivesTheSameBitsAtEveryWidth) {
  constexpr DType kSources[] = {DType::kUint8, DType::kUint16, DType::kFloat32};
  int cases = 0;
  for (const Json& step : FloatSteps()) {
    for (const DType source : kSources) {
      for (const DType to : kPatchTypes) {
        ChainOptions options;
        options.source_dtype = source;
        options.dtype = to;
        options.patch = Flat(7 + cases % 4 * 9, 5 + cases % 7 * 11);
        options.layout = cases % 2 != 0 ? PatchLayout::kNhwc : PatchLayout::kNchw;
        options.augment = Json::array({step});
        // Beside what is a table: noise of nothing but numbers keeps the chain in float.
        if (step.contains("normalize") || step.contains("cast") || step.contains("flip") ||
            step.contains("crop")) {
          options.augment.push_back(FloatSteps()[7]);
        }
        SCOPED_TRACE(StrCat(DumpJson(options.augment), " ", NameOf(source), " ", NameOf(to), " ",
                            options.patch.ToString()));
        ExpectOneResult(options, static_cast<std::uint64_t>(cases), cases % 3, cases % 5);
        ++cases;
      }
    }
  }
  EXPECT_GE(cases, 144);
}

TEST(FloatChain, ReinhardGivesTheSameBitsAtEveryWidth) {
  for (const DType dtype : {DType::kUint8, DType::kUint16, DType::kFloat32}) {
    ChainOptions options;
    options.patch = Flat(19, 45);
    options.source_dtype = dtype;
    options.preprocess = Json::array({ReinhardStep()});
    for (const char* more : {"[]", R"([{"hed_jitter": {"p": 1}}, {"gaussian_blur": {"p": 1}}])"}) {
      options.augment = Json::parse(more);
      ExpectOneResult(options, 3, 5, 2);
    }
  }
}

TEST(FloatChain, ReinhardToItsOwnNumbersChangesHardlyAnything) {
  ChainOptions options;
  options.patch = Flat(32, 64);
  Json step = ReinhardStep();
  step["stain_normalize"]["reference_fit"] = plan::ValuesOf(OtherReinhard());
  options.preprocess = Json::array({step});
  const auto chain = Chain::Compile(options);
  ASSERT_TRUE(chain.ok()) << chain.status();
  const Spaced source = NoiseSource(*chain);
  const auto made = RunGuarded(*chain, source.view, {});
  for (std::int64_t i = 0; i < 32 * 64; ++i) {
    for (std::int64_t c = 0; c < 3; ++c) {
      float value;
      std::memcpy(&value, made.data() + 4 * (c * 32 * 64 + i), 4);
      const std::byte* at = source.view.data + i / 64 * source.view.stride_bytes[0] +
                            i % 64 * source.view.stride_bytes[1] + c * source.view.stride_bytes[2];
      // skimage's curve has a step of 2e-6 where its line ends, and its matrices are rounded.
      ASSERT_NEAR(value, std::to_integer<int>(*at), 0.02) << i << " " << c;
    }
  }
}

TEST(FloatChain, RandomChainsGiveTheSameBitsAtEveryWidth) {
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    const auto steps = FloatSteps();
    const PhiloxBlock random = Draw({seed, 0, 1, 0, DrawStream::kParameters}, 0);
    ChainOptions options;
    for (std::size_t i = 0; i < steps.size(); ++i) {
      if ((random.word[0] >> i & 1u) != 0) options.augment.push_back(steps[i]);
    }
    options.patch = Flat(8 + random.word[1] % 40, 8 + random.word[2] % 150);
    options.dtype = kPatchTypes[seed % 4];
    SCOPED_TRACE(StrCat("seed ", seed, " ", DumpJson(options.augment)));
    ExpectOneResult(options, seed, 3, 0);
  }
}

TEST(FloatChain, OtherChannelsAndTypesAreSampledToo) {
  for (const int channels : {1, 2, 4, 16, 64}) {
    for (const DType source : {DType::kUint8, DType::kInt16, DType::kFloat32}) {
      ChainOptions options;
      options.channels = channels;
      options.source_dtype = source;
      options.patch = Flat(19, 37);
      const auto steps = FloatSteps();
      options.augment = Json::array({steps[0], steps[1], steps[6], steps[7]});
      ExpectOneResult(options, 3, 1, 1);
    }
  }
}

TEST(FloatChain, ParametersThatChangeNothingChangeNoBit) {
  const Json same = Json::parse(R"([{"affine": {"p": 1}}, {"elastic": {"p": 1, "amplitude": 0}},
      {"hed_jitter": {"p": 1, "alpha": 0, "beta": 0}}, {"stain_jitter": {"p": 1, "alpha": 0,
      "beta": 0}}, {"color_jitter": {"p": 1}}, {"gaussian_blur": {"p": 1, "sigma": [0, 0]}},
      {"gaussian_noise": {"p": 1, "std": [0, 0]}}])");
  Json never = Json::array();
  for (Json step : FloatSteps()) {
    if (!step.begin()->contains("p")) continue;
    step.begin().value()["p"] = 0;
    never.push_back(step);
  }
  for (const Json& list : {same, never}) {
    for (const CpuLevel level : kCpuLevels) {
      ChainOptions options;
      options.patch = Flat(33, 70);
      options.dtype = DType::kUint8;
      options.cpu_level = level;
      const auto plain = Chain::Compile(options);
      options.augment = list;
      const auto chain = Chain::Compile(options);
      ASSERT_TRUE(plain.ok() && chain.ok()) << chain.status();
      const Spaced source = NoiseSource(*chain);
      for (std::uint64_t ordinal = 0; ordinal < 4; ++ordinal) {
        const DrawKey key{1, 0, ordinal, 0, DrawStream::kParameters};
        ASSERT_EQ(RunGuarded(*chain, source.view, key), GuardedRun(*plain, source.view, key));
      }
    }
  }
}

TEST(FloatChain, WholePixelsOfAFloatChainAreThoseOfTheTables) {
  ChainOptions options;
  options.patch = Flat(64, 64);
  options.dtype = DType::kFloat32;
  options.augment =
      Json::parse(R"([{"crop": {"margin": [3, 5]}}, {"flip": {}}, {"rotate90": {}}])");
  const auto table = Chain::Compile(options);
  options.augment.push_back(Json::parse(R"({"gaussian_noise": {"p": 0}})"));
  const auto in_float = Chain::Compile(options);
  ASSERT_TRUE(table.ok() && in_float.ok());
  const Spaced source = NoiseSource(*table);
  for (std::uint64_t ordinal = 0; ordinal < 30; ++ordinal) {
    const DrawKey key{5, 0, ordinal, 0, DrawStream::kParameters};
    ASSERT_EQ(RunGuarded(*in_float, source.view, key), GuardedRun(*table, source.view, key));
  }
}

TEST(FloatChain, LabelsGoWhereThePixelsGo) {
  ChainOptions options;
  options.patch = Flat(60, 60);
  options.dtype = DType::kUint8;
  options.channels = 1;
  options.augment = Json::parse(R"([{"crop": {"margin": [8, 8]}}, {"flip": {}}, {"rotate90": {}},
      {"affine": {"p": 0.7, "degrees": [-45, 45], "scale": [0.8, 1.3]}},
      {"elastic": {"p": 0.5, "amplitude": 5}}])");
  const auto chain = Chain::Compile(options);
  ASSERT_TRUE(chain.ok()) << chain.status();
  // Blocks of 20 pixels: away from their edges the interpolated value is the label itself.
  Spaced blocks(DType::kUint8, {76, 76, 1}, 0, 0);
  for (std::int64_t y = 0; y < 76; ++y) {
    for (std::int64_t x = 0; x < 76; ++x) {
      *blocks.At(y, x, 0) = static_cast<std::byte>(40 * (y / 20) + 9 * (x / 20));
    }
  }
  std::vector<std::uint8_t> labels(60 * 60);
  std::vector<std::byte> image(60 * 60), scratch;
  std::int64_t same = 0;
  for (std::uint64_t ordinal = 0; ordinal < 20; ++ordinal) {
    const DrawKey key{3, 0, ordinal, 0, DrawStream::kParameters};
    ASSERT_TRUE(chain->Run(blocks.view, key, image, scratch).ok());
    ASSERT_TRUE(chain->RunLabels(blocks.view, key, labels, scratch).ok());
    for (std::size_t i = 0; i < labels.size(); ++i) {
      EXPECT_EQ(labels[i] % 40 % 9, 0) << "no label lies between two";
      same += static_cast<std::uint8_t>(image[i]) == labels[i] ? 1 : 0;
    }
  }
  EXPECT_GT(same, 20 * 60 * 60 * 8 / 10);
  EXPECT_EQ(chain->RunLabels(blocks.view, {}, std::span(labels).first(5), scratch).code(),
            absl::StatusCode::kInvalidArgument);
}

TEST(FloatChain, LabelsOfWholePixelsAreTheImagesPixels) {
  ChainOptions options;
  options.patch = Flat(57, 57);
  options.dtype = DType::kUint8;
  options.channels = 1;
  options.augment =
      Json::parse(R"([{"crop": {"margin": [6, 6]}}, {"flip": {}}, {"rotate90": {}}])");
  const auto chain = Chain::Compile(options);
  ASSERT_TRUE(chain.ok()) << chain.status();
  Spaced noise(DType::kUint8, {69, 69, 1}, 0, 0);
  for (std::int64_t i = 0; i < 69 * 69; ++i) {
    *noise.At(i / 69, i % 69, 0) = static_cast<std::byte>(i * i % 251);
  }
  std::vector<std::uint8_t> labels(57 * 57);
  std::vector<std::byte> image(57 * 57), scratch;
  for (std::uint64_t ordinal = 0; ordinal < 40; ++ordinal) {
    const DrawKey key{3, 0, ordinal, 0, DrawStream::kParameters};
    ASSERT_TRUE(chain->Run(noise.view, key, image, scratch).ok());
    ASSERT_TRUE(chain->RunLabels(noise.view, key, labels, scratch).ok());
    ASSERT_EQ(std::memcmp(image.data(), labels.data(), image.size()), 0) << "ordinal " << ordinal;
  }
}

std::string RefusalOf(const char* list, ChainOptions options = {}) {
  if (options.patch.Empty()) options.patch = Flat(64, 64);
  options.augment = Json::parse(list);
  const auto chain = Chain::Compile(options);
  return chain.ok() ? "" : std::string(chain.status().message());
}

TEST(FloatChain, RefusesWhatCannotBe) {
  const auto refused = [](const char* list, const char* words) {
    EXPECT_NE(RefusalOf(list).find(words), std::string::npos) << list << ": " << RefusalOf(list);
  };
  refused(R"([{"affine": {"degrees": [15, -15]}}])", "low bound is above");
  refused(R"([{"affine": {"p": 1.5}}])", "out of range");
  refused(R"([{"affine": {"scale": [0, 1]}}])", "out of range");
  refused(R"([{"elastic": {"amplitude": 30}}])", "folds the patch");
  refused(R"([{"elastic": {}}])", "amplitude");
  refused(R"([{"elastic": {"amplitude": 1}}, {"elastic": {"amplitude": 1}}])", "named twice");
  refused(R"([{"affine": {"border": "edge"}}, {"elastic": {"amplitude": 1}}])", "border: differs");
  refused(R"([{"gaussian_noise": {"std": [0.2, 0.1]}}])", "low bound is above");
  refused(R"([{"gaussian_blur": {"sigma": [0, 99]}}])", "out of range");
  refused(R"([{"hed_jitter": {"alpha": -1}}])", "out of range");
  ChainOptions grey;
  grey.channels = 1;
  EXPECT_NE(RefusalOf(R"([{"hed_jitter": {}}])", grey).find("1 channel"), std::string::npos);
  ChainOptions signed_pixels;
  signed_pixels.source_dtype = DType::kInt16;
  EXPECT_NE(RefusalOf(R"([{"color_jitter": {}}])", signed_pixels).find("not int16"),
            std::string::npos);
  ChainOptions deep;
  deep.patch = {1, 32, 32};
  deep.kind = plan::PatchKind::kVolume;
  EXPECT_NE(RefusalOf(R"([{"affine": {}}])", deep).find("needs images of one channel"),
            std::string::npos);
}

TEST(FloatChain, AStainNormalizeWithoutAFitIsRefusedNotGuessed) {
  ChainOptions options;
  options.patch = Flat(8, 8);
  options.preprocess = Json::parse(R"([{"stain_normalize": {}}])");
  const auto chain = Chain::Compile(options);
  ASSERT_TRUE(chain.ok()) << chain.status();
  EXPECT_TRUE(chain->needs_fit());
  const Spaced source = NoiseSource(*chain);
  std::vector<std::byte> out(chain->patch_bytes()), scratch;
  EXPECT_NE(chain->Run(source.view, {}, out, scratch).message().find("no stain fit"),
            std::string_view::npos);
  options.preprocess = Json::array({ReinhardStep()});
  const auto reinhard = Chain::Compile(options);
  ASSERT_TRUE(reinhard.ok()) << reinhard.status();
  const plan::MacenkoFit fit = OtherFit();
  EXPECT_NE(reinhard->Run(source.view, {}, out, scratch, &fit).message().find("no stain fit"),
            std::string_view::npos);
}

/// A patch of noise as a chain makes it of those steps.
std::vector<std::byte> MadeOf(const Json& steps, const ImageColours& colours) {
  ChainOptions options;
  options.patch = Flat(9, 33);
  options.augment = steps;
  const auto chain = Chain::Compile(options);
  EXPECT_TRUE(chain.ok()) << chain.status();
  std::vector<std::byte> out(chain->patch_bytes()), scratch;
  const Status run = chain->Run(NoiseSource(*chain).view, {}, out, scratch, colours);
  EXPECT_TRUE(run.ok()) << run;
  return out;
}

TEST(FloatChain, EachImageIsMappedToTheReferenceItNames) {
  const plan::MacenkoFit fit = OtherFit();
  const plan::MacenkoFit far = {.stains = {{{0.6, 0.8, 0}, {0, 0.96, 0.28}}},
                                .max_concentrations = {2.5, 0.4}};
  const plan::ReinhardFit lab = OtherReinhard(), bright = {.mean = {80, 5, 5}, .std = {5, 3, 4}};
  const Json references[][2] = {{plan::ValuesOf(plan::DefaultMacenko()), plan::ValuesOf(far)},
                                {plan::ValuesOf(plan::DefaultReinhard()), plan::ValuesOf(bright)}};
  const char* const profiles[] = {"macenko/cucim", "reinhard"};
  for (std::size_t p = 0; p < 2; ++p) {
    Json step = {{"profile", profiles[p]},
                 {"scanner_fits", {{"0", references[p][0]}, {"1", references[p][1]}}}};
    ImageColours colours = &fit;
    colours.reinhard = &lab;
    std::vector<std::vector<std::byte>> made;
    for (colours.stain_reference = 0; colours.stain_reference < 2; ++colours.stain_reference) {
      ImageColours alone = colours;
      alone.stain_reference = 0;
      const Json single = {{"profile", profiles[p]},
                           {"reference_fit", references[p][colours.stain_reference]}};
      made.push_back(MadeOf(Json::array({{{"stain_normalize", step}}}), colours));
      EXPECT_EQ(made.back(), MadeOf(Json::array({{{"stain_normalize", single}}}), alone));
    }
    EXPECT_NE(made[0], made[1]);
    ChainOptions options;
    options.patch = Flat(9, 33);
    options.augment = Json::array({{{"stain_normalize", step}}});
    const auto chain = Chain::Compile(options);
    std::vector<std::byte> out(chain->patch_bytes()), scratch;
    EXPECT_FALSE(chain->Run(NoiseSource(*chain).view, {}, out, scratch, colours).ok());  // a third
  }
  ChainOptions named;
  named.patch = Flat(9, 33);
  EXPECT_NE(RefusalOf(R"([{"stain_normalize": {"scanners": {"at2": "default"}}}])", named)
                .find("'default': not fitted"),
            std::string::npos);
  EXPECT_NE(RefusalOf(StrCat(R"([{"stain_normalize": {"scanner_fits": {"at2": )",
                             DumpJson(references[0][0]), "}}}]")
                          .c_str(),
                      named)
                .find("not numbered"),
            std::string::npos);
}

TEST(FloatChain, StainJitterGoesByTheReferencesStainsAndUnderReinhardByTheShippedOnes) {
  const plan::MacenkoFit fit = OtherFit();
  const plan::ReinhardFit lab = OtherReinhard();
  ImageColours colours = &fit;
  colours.reinhard = &lab;
  const Json jitter = Json::parse(R"({"stain_jitter": {"p": 1}})");
  // The Reinhard method maps L*a*b* and finds no stain vectors: the jitter is drawn in the same
  // basis as without stain_normalize.
  const auto drawn = [&](const Json& preprocess) {
    const auto steps = plan::SortOps(preprocess, Json::array({jitter}));
    const auto program = ChainProgram::Compile(*steps, {.patch = Flat(8, 8)});
    EXPECT_TRUE(program.ok()) << program.status();
    std::optional<OdMap> map;
    for (const PatchStep& step : program->Draw({{}, colours, {}})) {
      VisitStep(std::get<AnyPointStep>(step), [&map](const auto& one) {
        if constexpr (std::is_same_v<std::decay_t<decltype(one)>, OdMap>) map = one;
      });
    }
    return map;
  };
  const auto with = [&](const Json& normalize) {
    return drawn(Json::array({{{"stain_normalize", normalize}}}));
  };
  const auto reinhard = with({{"profile", "reinhard"}});
  const auto plain = drawn(Json::array());
  ASSERT_TRUE(reinhard.has_value() && plain.has_value());
  const auto same = [](const OdMap& a, const OdMap& b) {
    return std::memcmp(&a, &b, sizeof a) == 0;
  };
  EXPECT_TRUE(same(*reinhard, *plain));
  // Under Macenko it goes by the reference that the image is mapped to.
  const plan::MacenkoFit basis = {.stains = {{{0.6, 0.8, 0}, {0, 0.96, 0.28}}},
                                  .max_concentrations = {2, 1}};
  const auto macenko = with({{"reference_fit", plan::ValuesOf(basis)}});
  ASSERT_TRUE(macenko.has_value());
  const plan::OpStep step = plan::SortOps(Json::array(), Json::array({jitter}))->at(0);
  DrawKey own;
  own.op_occurrence = plan::Occurrence(step);
  const auto expected = [&](const plan::MacenkoFit& stains) {
    const auto options = plan::ReadOptions<StainJitterOptions>(step.options);
    return OdMapOf(DrawStainJitter(options, stains, own).After(StainNormalizeStep(fit, basis)),
                   plan::kStainWhite, 255);
  };
  EXPECT_TRUE(same(*macenko, expected(basis)));
  EXPECT_FALSE(same(*macenko, expected(plan::DefaultMacenko())));
}

/// float32 values of a patch of one colour, planar, as one op makes it.
std::vector<float> MadeOfColour(const char* step, std::array<int, 3> colour, const Extent& patch) {
  ChainOptions options;
  options.patch = patch;
  options.augment = Json::array({Json::parse(step)});
  const auto chain = Chain::Compile(options);
  EXPECT_TRUE(chain.ok()) << chain.status();
  Spaced source(DType::kUint8, {patch.y, patch.x, 3}, 0, 0);
  for (std::size_t i = 0; i < source.memory.size(); ++i) {
    source.memory[i] = static_cast<std::byte>(colour[i % 3]);
  }
  const plan::MacenkoFit fit = OtherFit();
  const plan::ReinhardFit lab = OtherReinhard();
  ImageColours colours = &fit;
  colours.reinhard = &lab;
  std::vector<std::byte> out(chain->patch_bytes()), scratch;
  EXPECT_TRUE(chain->Run(source.view, {}, out, scratch, colours).ok());
  std::vector<float> values(out.size() / sizeof(float));
  std::memcpy(values.data(), out.data(), out.size());
  for (const float value : values) EXPECT_TRUE(std::isfinite(value)) << step;
  return values;
}

TEST(FloatChain, FlatColoursAndTheSmallestPatchesAreDefined) {
  const Extent sizes[] = {Flat(1, 1), Flat(1, 7), Flat(7, 1), Flat(2, 17)};
  for (const Extent& size : sizes) {
    const auto one = static_cast<std::size_t>(size.Pixels());
    for (const int grey : {0, 1, 128, 239, 241, 255}) {
      const std::array<int, 3> colour = {grey, grey, grey};
      SCOPED_TRACE(StrCat(size.ToString(), " of ", grey));
      const auto all_are = [&](const char* step, double wanted, double tolerance) {
        for (const float value : MadeOfColour(step, colour, size)) {
          ASSERT_NEAR(value, wanted, tolerance) << step;
        }
      };
      // Sampling, mirroring and averaging leave an image of one colour as it is.
      for (const char* border : {"reflect101", "reflect", "edge"}) {
        all_are(StrCat(R"({"affine": {"p": 1, "degrees": [-180, 180], "scale": [0.1, 10],
                       "translate": [1, 1], "border": ")",
                       border, R"("}})")
                    .c_str(),
                grey, 1e-4);
      }
      all_are(R"({"elastic": {"p": 1, "points": 5, "amplitude": 0.01}})", grey, 1e-4);
      all_are(R"({"gaussian_blur": {"p": 1, "sigma": [16, 16]}})", grey, 1e-3);
      // Grey has no hue and no saturation to change; its contrast is about itself. The tolerance is
      // that of the oracle.
      all_are(R"({"color_jitter": {"p": 1, "hue": [-0.5, 0.5], "saturation": [0, 10],
                 "contrast": [0, 2]}})",
              grey, 5e-3);
      all_are(R"({"color_jitter": {"p": 1, "brightness": [0, 0]}})", 0, 0);
      // Above the fit's white there is no stain: it becomes that white.
      const auto stained = MadeOfColour(R"({"stain_normalize": {}})", colour, size);
      if (grey >= 240) EXPECT_NEAR(stained[0], 240, 1e-3);
      MadeOfColour(R"({"stain_normalize": {"profile": "reinhard"}})", colour, size);
      MadeOfColour(R"({"stain_jitter": {"p": 1, "alpha": 1, "beta": 2}})", colour, size);
      MadeOfColour(R"({"hed_jitter": {"p": 1, "alpha": 1, "beta": 2}})", colour, size);
      EXPECT_EQ(MadeOfColour(R"({"gaussian_noise": {"p": 1, "std": [1, 1]}})", colour, size).size(),
                3 * one);
    }
    const auto pale =
        MadeOfColour(R"({"color_jitter": {"p": 1, "saturation": [0, 0]}})", {200, 30, 90}, size);
    EXPECT_NEAR(pale[0], pale[one], 1e-3);
    EXPECT_NEAR(pale[0], pale[2 * one], 1e-3);
  }
}

}  // namespace
}  // namespace patchbay::ops
