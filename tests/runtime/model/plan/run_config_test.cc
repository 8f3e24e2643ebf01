#include "runtime/model/plan/run_config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "ops/chain/chain.h"
#include "runtime/core/strings.h"
#include "tests/contract/known_ops.h"

namespace patchbay::plan {
namespace {

constexpr std::string_view kFull = R"(
dataset: [stores/a.zarr, slides/b.svs]
numerics: cpu
seed: 7678
patch: {size: [512, 256], level: 1}
sampling: {order: sequential}
batch: {global_size: 32, dtype: float16, layout: nhwc, prefetch: 3, tail: wrap}
preprocess: [{normalize: {scale: 255, mean: [0.70, 0.55, 0.70], std: [0.2, 0.2, 0.2]}}]
augment: [{flip: {}}]
)";

StatusOr<RunConfig> ReadConfig(std::string_view text) { return ParseRunConfig(text, "run.yaml"); }

std::string ErrorOf(std::string_view text) {
  const auto config = ReadConfig(text);
  return config.ok() ? "" : std::string(MessageOf(config.status()));
}

TEST(RunConfig, ReadsEveryKey) {
  const auto config = ReadConfig(kFull);
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_EQ(config->dataset, (std::vector<std::string>{"stores/a.zarr", "slides/b.svs"}));
  EXPECT_EQ(config->numerics, Numerics::kCpu);
  EXPECT_EQ(config->seed, 7678u);
  EXPECT_EQ(config->patch, Flat(512, 256));
  EXPECT_FALSE(config->has_depth);
  EXPECT_EQ(config->level, 1u);
  EXPECT_EQ(config->order, PatchOrder::kSequential);
  EXPECT_EQ(config->dtype, DType::kFloat16);
  EXPECT_EQ(config->layout, PatchLayout::kNhwc);
  EXPECT_EQ(config->prefetch, 3u);
  EXPECT_EQ(config->tail, Tail::kWrap);
  EXPECT_EQ(DumpJson(config->preprocess),
            R"([{"normalize":{"mean":[0.7,0.55,0.7],"scale":255.0,"std":[0.2,0.2,0.2]}}])");
  EXPECT_EQ(DumpJson(config->augment), R"([{"flip":{"axes":[],"horizontal":0.5,"vertical":0.5}}])");
}

TEST(RunConfig, TheShortestFileHasDefaults) {
  const auto config = ReadConfig("dataset: stores/\npatch: {size: [64, 64]}\n");
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_EQ(
      DumpJson(ToJson(*config)),
      R"({"augment":[],"batch":{"dtype":"float32","global_size":32,"layout":"nchw",)"
      R"("meta":false,"prefetch":2,"tail":"keep"},"dataset":["stores/"],"on_bad_image":"fail",)"
      R"("patch":{"channels":[],"level":0,"mixed_mpp":false,"mixed_spacing":false,)"
      R"("mpp":[],"mpp_tolerance":0.05,"resample":{"anisotropic":"together"},"size":[64,64],)"
      R"("spacing_tolerance":0.05,"upsample":false},"preprocess":[],)"
      R"("sampling":{"order":"shuffled","positions":"grid"},)"
      R"("seed":0})");
}

TEST(RunConfig, SurvivesATripThroughJson) {
  const auto config = ReadConfig(kFull);
  ASSERT_TRUE(config.ok());
  const auto again = RunConfigFromJson(ToJson(*config));
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_EQ(DumpJson(ToJson(*again)), DumpJson(ToJson(*config)));
}

TEST(RunConfig, ChannelsAreNamesThatDiffer) {
  const std::string patch = "dataset: ct/\npatch: {size: [32, 96, 64], channels: ";
  const auto config = ReadConfig(patch + "[flair, \"t1, c+\"]}\n");
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_EQ(config->channels, (std::vector<std::string>{"flair", "t1, c+"}));
  EXPECT_EQ(RunConfigFromJson(ToJson(*config))->channels, config->channels);
  EXPECT_EQ(ReadConfig(patch + "ct}\n")->channels, std::vector<std::string>{"ct"});
  const auto refusal = [&](const std::string& channels) {
    return std::string(MessageOf(ReadConfig(patch + channels + "}\n").status()));
  };
  EXPECT_THAT(refusal("[a, b, a]"), testing::HasSubstr("'a' is there twice"));
  EXPECT_THAT(refusal("[\"\"]"), testing::HasSubstr("a name of 0 bytes"));
  EXPECT_THAT(refusal("[" + std::string(65, 'x') + "]"), testing::HasSubstr("a name of 65 bytes"));
}

TEST(RunConfig, ThreeSizesAreAPatchOfAVolume) {
  const auto config = ReadConfig("dataset: ct/\npatch: {size: [32, 96, 64], fill: -1024}\n");
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_EQ(config->patch, Extent(32, 96, 64));
  EXPECT_TRUE(config->has_depth);
  EXPECT_EQ(config->fill, -1024);
  const auto again = RunConfigFromJson(ToJson(*config));
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_EQ(DumpJson(ToJson(*again)), DumpJson(ToJson(*config)));
  EXPECT_EQ(ErrorOf("dataset: s\npatch: {size: [64]}\n"),
            "run.yaml:2: key 'patch.size': expected 2 to 3 values, got 1");
  EXPECT_EQ(ErrorOf("dataset: s\npatch: {size: [2, 16384, 16384]}\n"),
            "run.yaml:2: key 'patch': size: a patch of more than 268435456 pixels");
}

TEST(RunConfig, PortsAreARangeThatIsKept) {
  const std::string head = "dataset: s\npatch: {size: [64, 64]}\n";
  const auto config = ReadConfig(head + "data: {ports: 7800-7899}\n");
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_EQ(config->data_ports, "7800-7899");
  EXPECT_EQ(RunConfigFromJson(ToJson(*config))->data_ports, "7800-7899");
  EXPECT_EQ(ReadConfig(head)->data_ports, "");
  EXPECT_EQ(ErrorOf(head + "data:\n  ports: 7899-7800\n"),
            "run.yaml:4: key 'data.ports': parse ports: 7899-7800: it runs backwards");
  EXPECT_EQ(
      ErrorOf(head + "data: {ports: 0-70000}\n"),
      "run.yaml:3: key 'data.ports': parse ports: 0-70000: expected FIRST-LAST, each from 1 to "
      "65535");
}

TEST(RunConfig, AnEmptyPathIsRefusedByKeyAndLine) {
  for (const char* dataset : {"''", "[a.svs, '']"}) {
    EXPECT_EQ(ErrorOf(StrCat("seed: 1\ndataset: ", dataset, "\npatch: {size: [8, 8]}\n")),
              "run.yaml:2: key 'dataset': an empty path");
  }
}

TEST(RunConfig, RefusesWhatAUserGetsWrong) {
  const std::string head = "dataset: s\npatch: {size: [64, 64]}\n";
  EXPECT_EQ(ErrorOf(head + "batch: {globalsize: 3}\n"),
            "run.yaml:3: unknown key 'batch.globalsize' (did you mean 'global_size'?)");
  EXPECT_EQ(ErrorOf(head + "batch:\n  dtype: float61\n"),
            "run.yaml:4: key 'batch.dtype': expected one of uint8, float16, bfloat16, float32, got "
            "'float61' (did you mean 'float16'?)");
  EXPECT_EQ(ErrorOf(head + "augment: [{flop: {}}]\n"),
            "run.yaml:3: unknown key 'augment[0].flop' (did you mean 'flip'?)");
  EXPECT_EQ(ErrorOf(head + "preprocess:\n- normalize: {std: [0.1, 0, 0.1]}\n"),
            "run.yaml:4: key 'preprocess[0].normalize': std must be above 0 in every channel");
  EXPECT_EQ(ErrorOf("patch: {size: [64, 64]}\n"), "run.yaml:1: key 'dataset' is missing");
  EXPECT_EQ(ErrorOf("dataset: s\n"), "run.yaml:1: key 'patch.size' is missing");
  EXPECT_EQ(ErrorOf("dataset: s\npatch: {size: 64}\n"),
            "run.yaml:2: key 'patch.size': expected a list of integers, got '64'; it has 2 values, "
            "as [64, 64]");
  const auto range = [&](const char* op) {
    const std::string error = ErrorOf(head + "augment: [" + op + "]\n");
    return error.substr(std::min(error.find("; "), error.size()));
  };
  EXPECT_EQ(range("{affine: {degrees: 15}}"), "; it is a range, [low, high], as [-15, 15]");
  EXPECT_EQ(range("{color_jitter: {hue: 0.05}}"), "; it is a range, [low, high], as [-0.05, 0.05]");
  EXPECT_EQ(range("{color_jitter: {brightness: 0.2}}"),
            "; it is a range, [low, high], as [0.8, 1.2]");
  EXPECT_EQ(range("{color_jitter: {contrast: 0.7}}"),
            "; it is a range, [low, high], as [0.3, 1.7]");
  EXPECT_EQ(range("{color_jitter: {brightness: 1.2}}"), "; it has 2 values, as [1.2, 1.2]");
  EXPECT_EQ(range("{gaussian_blur: {sigma: 0.7}}"), "; it has 2 values, as [0.7, 0.7]");
  EXPECT_EQ(ErrorOf("dataset: s\npatch: {size: [64, 0]}\n"),
            "run.yaml:2: key 'patch.size': 0 is out of range (1..16384 px)");
  EXPECT_EQ(ErrorOf("dataset: []\npatch: {size: [64, 64]}\n"),
            "run.yaml:1: key 'dataset': expected 1 to 100000 values, got 0");
  EXPECT_EQ(ErrorOf(head + "sampling: {patches_per_image: 5}\n"),
            "run.yaml:3: key 'sampling': patches_per_image and patches_per_epoch need positions: "
            "random");
  EXPECT_EQ(
      ErrorOf(head + "sampling: {positions: random, patches_per_image: 5, patches_per_epoch: 6}\n"),
      "run.yaml:3: key 'sampling': patches_per_image and patches_per_epoch exclude each other");
  EXPECT_EQ(ErrorOf(head + "seed: -1\n"), "run.yaml:3: key 'seed': -1 is out of range (>= 0)");
}

TEST(RunConfig, TwoKeysOfOneMeaningAreRefused) {
  const std::string flat = "dataset: s\npatch: {size: [64, 64]";
  for (const auto& [keys, pair] : std::vector<std::pair<std::string, std::string>>{
           {flat + "}\nbatch: {global_size: 8, per_rank: 2}\n", "global_size and per_rank"},
           {flat + ", mpp: [0.5], level: 0}\n", ""},  // says the same twice
           {flat + ", mpp: [0.5], level: 2}\n", "mpp and level"},
           {flat + ", mpp: [0.5], spacing: [1, 1, 1]}\n", "mpp and spacing"},
           {"dataset: s\npatch: {size: [8, 64, 64], spacing: [1, 1, 1], level: 0}\n", ""},
           {"dataset: s\npatch: {size: [8, 64, 64], spacing: [1, 1, 1], level: 1}\n",
            "spacing and level"}}) {
    const std::string error = ErrorOf(keys);
    EXPECT_EQ(error.find(pair + " exclude each other") != std::string::npos, !pair.empty())
        << keys << error;
  }
  EXPECT_EQ(ReadConfig(flat + "}\nbatch: {per_rank: 2}\n")->global_size, 0u);
}

constexpr std::string_view kMap = R"(
dataset: stores/
patch: {size: [64, 64]}
sampling: {order: sequential}
outputs: {tumour: {kind: map, classes: [a, b], at: 0.5}, score: {kind: score}}
weights: model.pt
)";

/// As a run takes the config: of no split.
std::string MapErrorOf(std::string_view more) {
  const auto config = ReadConfig(StrCat(kMap, more));
  if (!config.ok()) return std::string(MessageOf(config.status()));
  return std::string(MessageOf(ForSplit(*config, "").status()));
}

TEST(RunConfig, AMapKeepsItsOutputsAndDeliversPlaces) {
  const auto read = ReadConfig(kMap);
  ASSERT_TRUE(read.ok()) << read.status();
  const auto config = ForSplit(*read, "");
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_TRUE(IsMap(*config));
  EXPECT_TRUE(config->meta) << "results need to know where patches are from";
  EXPECT_EQ(config->weights, std::vector<std::string>{"model.pt"});
  EXPECT_EQ(DumpJson(config->outputs),
            R"({"score":{"kind":"score"},"tumour":{"at":0.5,"classes":["a","b"],"kind":"map"}})");
  EXPECT_FALSE(IsMap(*ReadConfig(kFull)));
}

TEST(RunConfig, AMapTakesEveryPatchOnceAndAsItIs) {
  EXPECT_NE(ErrorOf("dataset: a/\npatch: {size: [64, 64]}\noutputs: {}\n").find("at least one"),
            std::string::npos);
  EXPECT_NE(MapErrorOf("augment: [{flip: {}}]\n").find("key 'augment'"), std::string::npos);
  EXPECT_NE(MapErrorOf("batch: {tail: pad}\n").find("key 'batch.tail'"), std::string::npos);
  EXPECT_EQ(MapErrorOf("seed: 3\n"), "");
  auto config = *ReadConfig(kMap);
  config.order = PatchOrder::kShuffled;
  EXPECT_NE(MessageOf(ForSplit(config, "").status()).find("key 'sampling.order'"),
            std::string::npos);
  config = *ReadConfig(kMap);
  config.positions = Positions::kRandom;
  EXPECT_NE(MessageOf(ForSplit(config, "").status()).find("key 'sampling.positions'"),
            std::string::npos);
  config = *ReadConfig(kMap);
  config.outputs = Json::object();
  EXPECT_NE(MessageOf(ForSplit(config, "").status()).find("key 'weights'"), std::string::npos);
  EXPECT_NE(ErrorOf("dataset: a/\npatch: {size: [64, 64]}\noutputs: {../x: {}}\n").find("letters"),
            std::string::npos);
  EXPECT_NE(
      ErrorOf("dataset: a/\npatch: {size: [64, 64]}\noutputs: {x: 3}\n").find("a map of options"),
      std::string::npos);
}

}  // namespace
}  // namespace patchbay::plan
