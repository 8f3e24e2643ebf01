#include "runtime/model/resolution/volume_spacing.h"

#include <gtest/gtest.h>

#include "runtime/core/strings.h"
#include "runtime/model/ops/op_list.h"
#include "runtime/model/plan/image_volumes.h"
#include "runtime/model/plan/plan.h"
#include "runtime/model/plan/plan_fields.h"
#include "tests/contract/known_ops.h"

namespace patchbay::plan {
namespace {

const std::vector<VolumeLevel> kVolumeLevels = {
    {{100, 401, 400}, {1, 1, 1}}, {{50, 201, 200}, {2, 2, 2}}, {{25, 101, 100}, {4, 4, 4}}};

Spacing SpacingOf(double z, double y, double x) {
  const auto mm = [](double value) { return AxisSpacing{value, LengthUnit::kMillimeter}; };
  return {mm(z), mm(y), mm(x)};
}

WantedSpacing AskMm(double z, double y, double x, bool upsample = false) {
  WantedSpacing wanted;
  wanted.mm = {z, y, x};
  wanted.patch = {48, 96, 64};
  wanted.upsample = upsample;
  return wanted;
}

std::string SpacingRefusal(const WantedSpacing& wanted, const Spacing& spacing) {
  return std::string(ChooseSpacing(wanted, kVolumeLevels, spacing).status().message());
}

TEST(VolumeSpacing, ALevelWithinToleranceAlongAllAxesIsTakenAsItIs) {
  for (const auto& [mm, level] : {std::pair{0.77, 0}, {1.55, 1}, {3.1, 2}}) {
    const auto chosen = ChooseSpacing(AskMm(mm, mm, mm), kVolumeLevels, SpacingOf(0.8, 0.75, 0.75));
    ASSERT_TRUE(chosen.ok()) << chosen.status();
    EXPECT_EQ(chosen->view.level, level);
    EXPECT_EQ(chosen->view.size, kVolumeLevels[static_cast<std::size_t>(level)].size);
    EXPECT_EQ(chosen->view.source, Extent(48, 96, 64));
    EXPECT_EQ(chosen->step, PerAxis{});
    EXPECT_EQ(chosen->spacing.y, 0.75 * (1 << level));  // the volume's own
  }
}

TEST(VolumeSpacing, OtherwiseTheNextFinerLevelIsResampledToExactlyTheSpacing) {
  const auto chosen = ChooseSpacing(AskMm(2, 2, 2.5), kVolumeLevels, SpacingOf(0.8, 0.75, 0.75));
  ASSERT_TRUE(chosen.ok()) << chosen.status();
  EXPECT_EQ(chosen->view.level, 1);
  EXPECT_EQ(chosen->view.downsample_z, 2);
  EXPECT_EQ(chosen->spacing, (PerAxis{2, 2, 2.5}));
  EXPECT_EQ(chosen->step, (PerAxis{2 / 1.6, 2 / 1.5, 2.5 / 1.5}));
  EXPECT_EQ(chosen->view.source, Extent(60, 128, 107));
}

TEST(VolumeSpacing, SlicesThatAreTooThickAreInterpolatedOnlyWhereAsked) {
  const Spacing thick = SpacingOf(5, 0.75, 0.75);
  EXPECT_NE(SpacingRefusal(AskMm(1, 1, 1), thick)
                .find("key 'patch.spacing': 1 mm along z is finer than the volume, of 5 mm"),
            std::string::npos);
  const auto chosen = ChooseSpacing(AskMm(1, 1, 1, true), kVolumeLevels, thick);
  ASSERT_TRUE(chosen.ok()) << chosen.status();
  EXPECT_EQ(chosen->view.level, 0);  // no level that loses more along z
  EXPECT_EQ(chosen->step, (PerAxis{0.2, 1 / 0.75, 1 / 0.75}));
  EXPECT_EQ(chosen->view.source, Extent(10, 128, 85));
  // Within the tolerance along one axis, resampled along the others.
  EXPECT_TRUE(ChooseSpacing(AskMm(1, 1, 1), kVolumeLevels, SpacingOf(1.04, 0.75, 0.75)).ok());
}

TEST(VolumeSpacing, WhatAVolumeCannotGiveIsRefusedByKey) {
  EXPECT_NE(SpacingRefusal(AskMm(1, 1, 1), Spacing{})
                .find("key 'patch.spacing': the image does not state"),
            std::string::npos);
  EXPECT_NE(SpacingRefusal(AskMm(100, 1, 1), SpacingOf(0.8, 0.75, 0.75)).find("not in"),
            std::string::npos);
  EXPECT_NE(SpacingRefusal(AskMm(0.01, 1, 1, true), SpacingOf(5, 1, 1)).find("not in"),
            std::string::npos);
}

TEST(VolumeSpacing, TheOneCoarseAxisIsSeparateAsInNnUNet) {
  // Spacings of the volume come first, then the ones asked for; more than 3 times; not two axes.
  EXPECT_EQ(CoarseAxis({5, 0.8, 0.8}, {1, 1, 1}), 0);
  EXPECT_EQ(CoarseAxis({1, 1, 1}, {0.5, 0.5, 1.6}), 2);
  EXPECT_EQ(CoarseAxis({1, 4, 1}, {5, 1, 1}), 1);
  EXPECT_EQ(CoarseAxis({3, 1, 1}, {1, 1, 3}), kNoAxis);
  EXPECT_EQ(CoarseAxis({4, 4, 1}, {5, 1, 1}), kNoAxis);
  WantedSpacing wanted = AskMm(1, 1, 1, true);
  const Spacing thick = SpacingOf(5, 0.75, 0.75);
  EXPECT_EQ(ChooseSpacing(wanted, kVolumeLevels, thick)->nearest_axis, kNoAxis);
  wanted.separate_z = true;
  EXPECT_EQ(ChooseSpacing(wanted, kVolumeLevels, thick)->nearest_axis, 0);
  EXPECT_EQ(ChooseSpacing(wanted, kVolumeLevels, SpacingOf(0.8, 0.75, 0.75))->nearest_axis,
            kNoAxis);
  // A level that is taken as it is has nothing to resample.
  wanted.mm = {5, 0.75, 0.75};
  EXPECT_EQ(ChooseSpacing(wanted, kVolumeLevels, thick)->nearest_axis, kNoAxis);
}

std::string Faults(const std::string& patch) {
  const auto config = ParseRunConfig(StrCat("dataset: a\npatch: ", patch, "\n"), "run.yaml");
  return config.ok() ? "" : std::string(config.status().message());
}

TEST(VolumeSpacing, KeysThatExcludeEachOtherAreRefusedWithTheirLine) {
  EXPECT_EQ(Faults("{size: [8, 8, 8], spacing: [1, 1, 1]}"), "");
  EXPECT_EQ(Faults("{size: [8, 8, 8], spacing: [1, 1, 1], resample: {anisotropic: separate_z}}"),
            "");
  for (const auto& [patch, cause] : std::vector<std::pair<std::string, std::string>>{
           {"{size: [8, 8], spacing: [1, 1, 1]}", "spacing is for volumes"},
           {"{size: [8, 8, 8], spacing: [1, 1, 1], level: 1}", "spacing and level exclude"},
           {"{size: [8, 8, 8], resample: {anisotropic: separate_z}}",
            "resample: without a spacing no patch is resampled"},
           {"{size: [8, 8, 8], spacing: [1, 1, 1], resample: {anisotropic: z}}",
            "patch.resample.anisotropic"},
           {"{size: [8, 8], spacing: [1, 1, 1], mpp: [1]}", "mpp and spacing exclude"},
           {"{size: [8, 8, 8], spacing: [1, 1]}", "patch.spacing"},
           {"{size: [8, 8, 8], spacing: [1, 1, 0]}", "patch.spacing"},
           {"{size: [8, 8, 8], spacing: [1, .nan, 1]}", "patch.spacing"},
           {"{size: [8, 8, 8], spacing_tolerance: 0.9}", "patch.spacing_tolerance"}}) {
    EXPECT_NE(Faults(patch).find(cause), std::string::npos) << patch << ": " << Faults(patch);
    EXPECT_NE(Faults(patch).find("run.yaml:2"), std::string::npos) << Faults(patch);
  }
}

RunConfig SpacingConfig(const std::string& sampling) {
  const auto config = ParseRunConfig(
      StrCat("dataset: a\nnumerics: cpu\npatch: {size: [48, 96, 64], spacing: [2, 2, 2.5]}\n",
             "sampling: ", sampling, "\n"),
      "run.yaml");
  EXPECT_TRUE(config.ok()) << config.status();
  return *config;
}

PlannedImage SpacedImage(const RunConfig& config) {
  const auto chosen =
      ChooseSpacing(WantedSpacingOf(config), kVolumeLevels, SpacingOf(0.8, 0.75, 0.75)).value();
  PlannedImage image{Sha256Of("v"), "zarr", chosen.view.size, 1, DType::kInt16};
  image.views = {chosen.view};
  image.volume = VolumeFacts{chosen.spacing, chosen.step};
  return image;
}

TEST(VolumeSpacing, GridsStepByTheVoxelsOfAPatchAndPlansReadBack) {
  const RunConfig config = SpacingConfig("{stride: [24, 48, 64], order: sequential}");
  const auto plan = Plan::Build(config, {SpacedImage(config)});
  ASSERT_TRUE(plan.ok()) << plan.status();
  // A patch of 60 x 128 x 107 out of 50 x 201 x 200 voxels, a step of 30 x 64 x 107.
  EXPECT_EQ(plan->patches_per_epoch(), 1u * 3 * 2);
  EXPECT_EQ(plan->DeriveSpec(0, 3)->box, (Box{0, 64, 107, 60, 128, 107}));
  EXPECT_EQ(plan->DeriveSpec(0, 3)->level, 1);
  const auto back = ParsePlan(plan->Text());
  ASSERT_TRUE(back.ok()) << back.status();
  EXPECT_EQ(back->images(), plan->images());
  EXPECT_EQ(back->digest(), plan->digest());
}

TEST(VolumeSpacing, APlanWithASeparateAxisReadsBackAndHasADigestOfItsOwn) {
  const RunConfig config = SpacingConfig("{}");
  RunConfig separate = config;
  separate.separate_z = true;
  EXPECT_EQ(RunConfigFromJson(ToJson(separate))->separate_z, true);
  PlannedImage image = SpacedImage(config);
  image.volume->nearest_axis = 0;
  const auto plan = Plan::Build(separate, {image});
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_EQ(ParsePlan(plan->Text())->images(), plan->images());
  const auto together = Plan::Build(config, {SpacedImage(config)});
  EXPECT_NE(plan->digest(), together->digest());
  EXPECT_EQ(together->Text().find("resample"), std::string::npos);
  for (const char* axis : {"3", "-1", "0.5", "\"z\""}) {
    const auto row = ParseJson(StrCat("[1, 1, 1, 0, 1, 1, 1, 2, ", axis, "]"), "t").value();
    EXPECT_FALSE(FromJson<VolumeFacts>(row, "t").ok()) << axis;
  }
}

TEST(VolumeSpacing, RandomPatchesLieInsideTheVolume) {
  const RunConfig config = SpacingConfig("{positions: random, patches_per_epoch: 500}");
  const auto plan = Plan::Build(config, {SpacedImage(config)});
  ASSERT_TRUE(plan.ok()) << plan.status();
  for (std::uint64_t i = 0; i < 500; ++i) {
    const Box box = plan->DeriveSpec(0, i)->box;
    EXPECT_EQ(box.Shape(), Extent(60, 128, 107));
    EXPECT_EQ(box.z, 0);  // deeper than the level
    EXPECT_GE(std::min(box.y, box.x), 0);
    EXPECT_LE(box.y + box.height, 201);
    EXPECT_LE(box.x + box.width, 200);
  }
}

TEST(VolumeSpacing, APlanWhosePatchesAreNotThoseOfTheSpacingIsRefused) {
  const RunConfig config = SpacingConfig("{}");
  PlannedImage image = SpacedImage(config);
  image.views.front().source.z += 1;
  EXPECT_FALSE(Plan::Build(config, {image}).ok());
  image = SpacedImage(config);
  image.views.clear();
  EXPECT_FALSE(Plan::Build(config, {image}).ok());
  image = SpacedImage(config);
  image.volume.reset();
  EXPECT_FALSE(Plan::Build(config, {image}).ok());
}

TEST(VolumeSpacing, AnyListOfOpsIsAVolumesUnderASpacing) {
  EXPECT_TRUE(IsVolumeChain({}, {48, 96, 64}, PatchKind::kResampled));
  EXPECT_FALSE(IsVolumeChain({}, {48, 96, 64}));
  const auto list = ParseJson(R"([{"rotate90": {}}])", "ops").value();
  EXPECT_FALSE(CheckOps(Json::array(), list, {8, 8, 8}, PatchKind::kResampled).ok());
  EXPECT_TRUE(CheckOps(Json::array(), list, {8, 8, 8}).ok());
}

TEST(VolumeSpacing, WhatIsAskedReadsBackFromItsPayload) {
  const WantedSpacing wanted = AskMm(1, 2, 3, true);
  EXPECT_EQ(FromJson<WantedSpacing>(JsonOf(wanted), "test").value(), wanted);
  EXPECT_EQ(DumpJson(JsonOf(wanted)),
            R"({"mm":[1.0,2.0,3.0],"separate_z":false,"size":[48,96,64],"tolerance":0.05,)"
            R"("upsample":true})");
  for (const char* text :
       {"{}", R"({"mm": [1, 1], "size": [1, 1, 1], "tolerance": 0, "upsample": true})",
        R"({"mm": [1, 1, 0], "size": [1, 1, 1], "tolerance": 0, "upsample": true})",
        R"({"mm": [1, 1, 1], "size": [1, 1, -1], "tolerance": 0, "upsample": true})"}) {
    EXPECT_FALSE(FromJson<WantedSpacing>(ParseJson(text, "t").value(), "test").ok()) << text;
  }
}

}  // namespace
}  // namespace patchbay::plan
