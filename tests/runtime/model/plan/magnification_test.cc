#include "runtime/model/resolution/magnification.h"

#include <gtest/gtest.h>

#include "runtime/core/strings.h"
#include "runtime/model/plan/plan.h"
#include "tests/contract/known_ops.h"

namespace patchbay::plan {
namespace {

const std::vector<Extent> kPlaneLevels = {Flat(4001, 6000), Flat(2001, 3000), Flat(1001, 1500),
                                          Flat(250, 375)};

Magnification AskMpp(std::vector<double> mpp) {
  Magnification m;
  m.mpp = std::move(mpp);
  m.patch = Flat(256, 512);
  return m;
}

std::string ViewsRefusal(const Magnification& m, const Spacing& spacing) {
  return std::string(ChooseViews(m, kPlaneLevels, spacing).status().message());
}

TEST(Magnification, LevelWithinToleranceIsTakenAsItIs) {
  const auto views =
      ChooseViews(AskMpp({0.26, 0.5, 1.0}), kPlaneLevels, SpacingOfMpp(0.2525, 0.2525));
  ASSERT_TRUE(views.ok()) << views.status();
  for (int i = 0; i < 3; ++i) {
    const PlannedView& view = (*views)[static_cast<std::size_t>(i)];
    EXPECT_EQ(view.level, i);
    EXPECT_EQ(view.source, Flat(256, 512));
    EXPECT_EQ(view.downsample_y, 1 << i);  // sizes are rounded up; the factor is not
  }
}

TEST(Magnification, OtherwiseTheNextFinerLevelIsAveraged) {
  const auto views = ChooseViews(AskMpp({0.75, 2.0, 0.55}), kPlaneLevels, SpacingOfMpp(0.25, 0.25));
  ASSERT_TRUE(views.ok()) << views.status();
  EXPECT_EQ((*views)[0].level, 1);
  EXPECT_EQ((*views)[0].source, Flat(384, 768));
  EXPECT_EQ((*views)[1].level, 2);
  EXPECT_EQ((*views)[1].source, Flat(512, 1024));
  EXPECT_EQ((*views)[2].level, 1);  // 10 % off is too far
  EXPECT_EQ((*views)[2].source, Flat(282, 563));
}

TEST(Magnification, AxesOfDifferentSpacingAreResampledEachByItsOwn) {
  const auto views = ChooseViews(AskMpp({1.0}), kPlaneLevels, SpacingOfMpp(0.25, 0.2));
  ASSERT_TRUE(views.ok()) << views.status();
  EXPECT_EQ((*views)[0].level, 1);
  EXPECT_EQ((*views)[0].source, Flat(512, 1280));
}

TEST(Magnification, WhatAnImageCannotGiveIsRefusedByKey) {
  EXPECT_NE(ViewsRefusal(AskMpp({0.2}), SpacingOfMpp(0.25, 0.25))
                .find("key 'patch.mpp': 0.2 um/px is finer"),
            std::string::npos);
  EXPECT_NE(ViewsRefusal(AskMpp({0.5}), Spacing{}).find("does not say how large"),
            std::string::npos);
  EXPECT_NE(ViewsRefusal(AskMpp({0.5}), Spacing{}).find("`patchbay ingest --assume-mpp`"),
            std::string::npos);
  EXPECT_NE(ViewsRefusal(AskMpp({500}), SpacingOfMpp(0.25, 0.25)).find("more than"),
            std::string::npos);
  Magnification up = AskMpp({0.2});
  up.upsample = true;
  const auto views = ChooseViews(up, kPlaneLevels, SpacingOfMpp(0.25, 0.25));
  ASSERT_TRUE(views.ok()) << views.status();
  EXPECT_EQ((*views)[0].source, Flat(205, 410));
}

TEST(Magnification, ContextsShareTheCentre) {
  PlannedView from, to;
  from.source = Flat(100, 100);
  to.source = Flat(150, 100);
  to.downsample_y = to.downsample_x = 4;
  const Box box = WithSameCentre(Box2D(1000, 2000, 100, 100), from, to);
  EXPECT_NEAR((static_cast<double>(box.y) + 75) * 4, 1050, 2);
  EXPECT_NEAR((static_cast<double>(box.x) + 50) * 4, 2050, 2);
  EXPECT_EQ(box.height, 150);
}

TEST(Magnification, AContextHalfAPixelOffTheCentreBeginsAtTheLaterOne) {
  PlannedView from, to;
  from.source = Flat(3, 3);
  to.source = Flat(2, 4);
  EXPECT_EQ(WithSameCentre(Box2D(-4, 0, 3, 3), from, to), Box2D(-3, 0, 2, 4));
}

StatusOr<Plan> PlanOfViews(const std::string& patch, std::vector<PlannedView> views) {
  PB_ASSIGN_OR_RETURN(const RunConfig config,
                      ParseRunConfig(StrCat("{dataset: a, numerics: cpu, patch: ", patch,
                                            ", batch: {global_size: 2, meta: true}}"),
                                     "test"));
  PlannedImage image{Sha256Of("a"), "zarr", kPlaneLevels[0], 3, DType::kUint8};
  if (!views.empty()) image.size = views[0].size;
  image.views = std::move(views);
  return Plan::Build(config, {image});
}

TEST(Magnification, PlanCarriesTheChoiceAndHasAnArrayForEachMpp) {
  const auto views = ChooseViews(AskMpp({0.75, 1.0}), kPlaneLevels, SpacingOfMpp(0.25, 0.25));
  ASSERT_TRUE(views.ok());
  const auto plan = PlanOfViews("{size: [256, 512], mpp: [0.75, 1.0]}", *views);
  ASSERT_TRUE(plan.ok()) << plan.status();
  const auto parsed = ParsePlan(plan->Text());
  ASSERT_TRUE(parsed.ok()) << parsed.status();
  EXPECT_EQ(parsed->digest(), plan->digest());
  EXPECT_EQ(parsed->layout().arrays[1].name, "image_1");
  EXPECT_EQ(parsed->layout().arrays[1].shape, parsed->layout().arrays[0].shape);
  EXPECT_EQ(parsed->layout().arrays[2].name, "ordinal");
  // 2001 x 3000 pixels of level 1 in boxes of 384 x 768.
  EXPECT_EQ(parsed->patches_per_epoch(), 6u * 4);
  const auto spec = parsed->DeriveSpec(0, 3);
  ASSERT_TRUE(spec.ok());
  EXPECT_EQ(spec->level, 1);
  EXPECT_EQ(spec->box.height, 384);
  EXPECT_EQ(spec->box.y % 384, 0);
  EXPECT_FALSE(PlanOfViews("{size: [256, 512], mpp: [0.75]}", {}).ok());
  EXPECT_FALSE(PlanOfViews("{size: [256, 512]}", *views).ok());
}

TEST(Magnification, ConfigsThatContradictThemselvesAreRefused) {
  for (const char* patch : {"{size: [8, 8], mpp: [0.5], level: 1}", "{size: [8, 8, 8], mpp: [0.5]}",
                            "{size: [8, 8], mpp: [0]}",
                            "{size: [8, 8], mpp: [0.5], "
                            "mpp_tolerance: 0.9}"}) {
    EXPECT_FALSE(ParseRunConfig(StrCat("{dataset: a, patch: ", patch, "}"), "test").ok()) << patch;
  }
}

TEST(Magnification, RandomCropsWithContextsAreRefused) {
  const auto views = ChooseViews(AskMpp({0.75, 1.0}), kPlaneLevels, SpacingOfMpp(0.25, 0.25));
  ASSERT_TRUE(views.ok());
  const auto config = ParseRunConfig(
      "{dataset: a, numerics: cpu, patch: {size: [256, 512], mpp: [0.75, 1.0]}, augment: [{crop: "
      "{margin: [8, 8]}}], batch: {global_size: 2}}",
      "test");
  ASSERT_TRUE(config.ok()) << config.status();
  PlannedImage image{Sha256Of("a"), "zarr", (*views)[0].size, 3, DType::kUint8};
  image.views = *views;
  EXPECT_NE(Plan::Build(*config, {image}).status().message().find("position: center"),
            std::string::npos);
}

TEST(Magnification, ComesBackFromJsonAndNothingElseDoes) {
  const Magnification m = AskMpp({0.75, 1.0});
  const auto back = MagnificationFromJson(ToJson(m));
  ASSERT_TRUE(back.ok()) << back.status();
  EXPECT_EQ(back->mpp, m.mpp);
  const auto views = ChooseViews(m, kPlaneLevels, SpacingOfMpp(0.25, 0.25));
  const auto views_back = ViewsFromJson(ToJson(*views));
  ASSERT_TRUE(views_back.ok());
  EXPECT_EQ(*views_back, *views);
  const std::vector<PlannedView> deep = {{2, {5, 30, 40}, {3, 4, 6}, 1.5, 2, 1},
                                         {0, {1, 30, 40}, {1, 4, 6}, 1.5, 2, 1}};
  EXPECT_EQ(DumpJson(ToJson(deep)), "[[2,5,30,40,3,4,6,1.0,1.5,2.0],[0,30,40,4,6,1.5,2.0]]");
  EXPECT_EQ(*ViewsFromJson(ToJson(deep)), deep);
  for (const char* wrong : {"[[0,1,1,1,1,1]]", "[[0,1,1,0,1,1,1]]", "[[0,1,1,-1,1,1,1]]",
                            "[[99,1,1,1,1,1,1]]", "[[0,1,1,1,1,0,1]]", "3"}) {
    EXPECT_FALSE(ViewsFromJson(*ParseJson(wrong, "test")).ok()) << wrong;
  }
}

}  // namespace
}  // namespace patchbay::plan
