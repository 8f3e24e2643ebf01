// Implausible numbers and keys are refused with the likely intention; plausible ones that look
// similar pass.
#include "runtime/model/plan/plausibility.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "runtime/core/strings.h"
#include "tests/contract/known_ops.h"

namespace patchbay::plan {
namespace {

using testing::HasSubstr;

StatusOr<RunConfig> ReadConfigWith(const std::string& more, const std::string& size = "[8, 8]") {
  return ParseRunConfig(StrCat("dataset: a.csv\npatch: {size: ", size, "}\n", more), "run.yaml");
}

std::string ConfigRefusal(const std::string& more, const std::string& size = "[8, 8]") {
  return std::string(ReadConfigWith(more, size).status().message());
}

TEST(Plausibility, AnOpThatChangesNothingIsRefusedByKeyAndLine) {
  EXPECT_EQ(ConfigRefusal("augment: [affine]"),
            "run.yaml:3: key 'augment[0].affine': changes nothing: give one of degrees, scale, "
            "shear, translate");
  EXPECT_THAT(ConfigRefusal("augment:\n  - flip\n  - affine: {p: 1, border: edge}"),
              HasSubstr("run.yaml:5: key 'augment[1].affine': changes nothing"));
  EXPECT_THAT(ConfigRefusal("augment: [affine: ]"),
              HasSubstr("'augment[0].affine': changes nothing"));
  EXPECT_THAT(ConfigRefusal("preprocess: [{color_jitter: {p: 0.5}}]"),
              HasSubstr("key 'preprocess[0].color_jitter': changes nothing: give one of "
                        "brightness, contrast, saturation, hue"));
  EXPECT_THAT(ConfigRefusal("augment: [color_jitter]"), HasSubstr("changes nothing"));
  // The identity may be stated, and so may never.
  for (const char* stated :
       {"augment: [{affine: {degrees: [0, 0]}}]", "augment: [{affine: {p: 0}}]",
        "augment: [{affine: {p: 0.0}}]", "augment: [{affine: {scale: [1, 1]}}]",
        "augment: [{affine: {shear: [-5, 5]}}]", "augment: [{affine: {translate: [0.1, 0.1]}}]",
        "augment: [{color_jitter: {p: 0}}]", "augment: [{color_jitter: {hue: [0, 0]}}]",
        "augment: [flip, hed_jitter, stain_jitter, gaussian_blur, gaussian_noise]",
        "preprocess: [normalize]"}) {
    const auto config = ReadConfigWith(stated);
    ASSERT_TRUE(config.ok()) << stated << ": " << config.status();
    EXPECT_TRUE(RunConfigFromJson(ToJson(*config)).ok()) << stated;
  }
}

TEST(Plausibility, ALabelSetThatNothingReadsIsRefused) {
  for (const char* unread :
       {"labels: {set: g}", "labels: {set: g, label: {column: isup}}",
        "labels: {set: g}\nsampling: {tissue: {min_fraction: 0.5}}",
        "labels: {set: g}\nsplit_column: s\nsplits: {val: {batch: {tail: pad}}}"}) {
    EXPECT_THAT(ConfigRefusal(unread), HasSubstr("run.yaml:3: key 'labels.set': nothing reads it"))
        << unread;
  }
  for (const char* read :
       {"labels: {set: g, mask: true}", "labels: {set: g, label: {rule: center}}",
        "labels: {label: {column: isup}}",
        "labels: {set: g}\nsampling: {positions: random, class_weights: {a: 1}}",
        "labels: {set: g, label: {column: isup}}\nsampling: {positions: random, class_weights: {a: "
        "1}}",
        "labels: {set: g}\nsplit_column: s\nsplits: {train: {sampling: {positions: random, "
        "class_weights: {a: 1}}}}"}) {
    const auto config = ReadConfigWith(read);
    ASSERT_TRUE(config.ok()) << read << ": " << config.status();
    // A split that samples otherwise has the set as well.
    EXPECT_TRUE(ForSplit(*config, "val").ok()) << read;
  }
  EXPECT_EQ(ConfigRefusal("labels: {set: g}\npreprocess: [ct_normalize]", "[4, 8, 8]"), "")
      << "the lock goes by its foreground";
}

std::string BatchRefusal(const std::string& more, const std::string& size = "[8, 8]") {
  const auto config = ReadConfigWith(more, size);
  EXPECT_TRUE(config.ok()) << config.status();
  return std::string(CheckBatchType(*config).message());
}

TEST(Plausibility, NormalisedValuesDoNotGoIntoBytes) {
  const std::string bytes = "batch: {dtype: uint8}\n";
  EXPECT_EQ(BatchRefusal(bytes + "preprocess: [{normalize: {mean: [0.7], std: [0.2]}}]"),
            "check ops: key 'batch.dtype': uint8 rounds what preprocess[0].normalize makes to a "
            "few whole numbers; take float16, bfloat16 or float32, or normalise in the trainer");
  for (const char* op : {"{window: {range: [-150, 250]}}", "zscore",
                         "{ct_normalize: {lower: 0, upper: 1, mean: 0, std: 1}}"}) {
    EXPECT_THAT(BatchRefusal(StrCat(bytes, "preprocess: [", op, "]"), "[4, 8, 8]"),
                HasSubstr("key 'batch.dtype': uint8 rounds"))
        << op;
  }
  EXPECT_THAT(BatchRefusal("preprocess: [normalize, {cast: {dtype: uint8}}]"),
              HasSubstr("key 'preprocess[1].cast': uint8 rounds what preprocess[0].normalize"));
  EXPECT_EQ(BatchRefusal(bytes + "augment: [flip, {cast: {dtype: uint8}}]"), "");
  for (const char* dtype : {"float16", "bfloat16", "float32"}) {
    EXPECT_EQ(BatchRefusal(StrCat("batch: {dtype: ", dtype, "}\npreprocess: [normalize]")), "");
  }
}

std::string NormalizeRefusal(const std::string& numbers, DType images = DType::kUint8) {
  const auto config = ReadConfigWith(StrCat("preprocess: [{normalize: {", numbers, "}}]"));
  EXPECT_TRUE(config.ok()) << config.status();
  return std::string(CheckNormalize(*config, images).message());
}

TEST(Plausibility, StatisticsOfBytesGoWithTheirScale) {
  const std::string of_bytes = "mean: [123.675, 116.28, 103.53], std: [58.395, 57.12, 57.375]";
  const std::string of_unit = "mean: [0.485, 0.456, 0.406], std: [0.229, 0.224, 0.225]";
  EXPECT_EQ(NormalizeRefusal(of_bytes),
            "check ops: key 'preprocess[0].normalize': images of uint8: a mean or std of 123.675 "
            "with scale: 255, which makes the values 0 to 1: statistics of values of 0 to 255 go "
            "with scale: 1");
  EXPECT_THAT(NormalizeRefusal("mean: [0.5], std: [1.01]"), HasSubstr("a mean or std of 1.01"));
  EXPECT_EQ(NormalizeRefusal(of_unit + ", scale: 1"),
            "check ops: key 'preprocess[0].normalize': images of uint8: a mean of 0.485 with "
            "scale: 1, which leaves the values 0 to 255: statistics of values of 0 to 1 go with "
            "scale: 255, the default");
  EXPECT_THAT(NormalizeRefusal("scale: 1, std: [0.2]"), HasSubstr("with scale: 1"));
  // SAM's and Caffe's statistics, the identity, x / 255 in two spellings.
  EXPECT_EQ(NormalizeRefusal(of_bytes + ", scale: 1"), "");
  EXPECT_EQ(NormalizeRefusal("mean: [104, 117, 123], scale: 1"), "");
  EXPECT_EQ(NormalizeRefusal(of_unit), "");
  EXPECT_EQ(NormalizeRefusal("mean: [1], std: [1]"), "");
  EXPECT_EQ(NormalizeRefusal("scale: 1"), "");
  EXPECT_EQ(NormalizeRefusal("scale: 1, std: [255]"), "");
  EXPECT_EQ(NormalizeRefusal(""), "");
  // Other types have other scales, and a window comes first.
  EXPECT_EQ(NormalizeRefusal(of_bytes, DType::kUint16), "");
  EXPECT_EQ(NormalizeRefusal(of_unit + ", scale: 1", DType::kFloat32), "");
  const auto windowed = ReadConfigWith(
      "preprocess: [{window: {range: [0, 200]}}, {normalize: {scale: 1, mean: [0.5], std: [0.2]}}]",
      "[4, 8, 8]");
  ASSERT_TRUE(windowed.ok()) << windowed.status();
  EXPECT_TRUE(CheckNormalize(*windowed, DType::kUint8).ok());
}

TEST(Plausibility, AMagnificationIsNoMpp) {
  const auto doubt = [](const std::string& patch) {
    const auto config =
        ParseRunConfig(StrCat("dataset: a\npatch: {size: [8, 8], ", patch, "}"), "r");
    EXPECT_TRUE(config.ok()) << config.status();
    return DoubtfulMpp(*config);
  };
  EXPECT_THAT(doubt("mpp: [20]"), HasSubstr("patch.mpp: 20 is taken as um per pixel"));
  EXPECT_THAT(doubt("mpp: [0.5, 10]"), HasSubstr("20x is about 0.5"));
  EXPECT_EQ(doubt("mpp: [0.5, 9.9]"), "");
  EXPECT_EQ(doubt("level: 2"), "");
}

TEST(Plausibility, LevelZeroBesideMppPassesAndNoOther) {
  const auto read = [](const std::string& patch) {
    return std::string(ParseRunConfig(StrCat("dataset: a\npatch: {size: [8, 8], ", patch, "}"), "r")
                           .status()
                           .message());
  };
  EXPECT_EQ(read("mpp: [0.5], level: 0"), "");
  EXPECT_THAT(read("mpp: [0.5], level: 1"), HasSubstr("mpp and level exclude each other"));
}

}  // namespace
}  // namespace patchbay::plan
