#include "runtime/plan/ops/stain_normalize.h"

#include <gtest/gtest.h>

#include "runtime/base/strings.h"
#include "runtime/config/key_table.h"

namespace patchbay::plan {
namespace {

StatusOr<Json> Checked(const Json& options) {
  return config::ValidateJson(options, StainNormalizeOptions::Keys(), "stain_normalize");
}

std::string Refusal(const Json& options) {
  return std::string(Checked(options).status().message());
}

TEST(StainNormalize, SilentOptionsMeanTheShippedMacenkoReference) {
  const auto checked = Checked(Json::object());
  ASSERT_TRUE(checked.ok()) << checked.status();
  const auto options = StainNormalizeOptions::FromJson(*checked);
  EXPECT_EQ(options.profile, StainProfile::kMacenkoCucim);
  EXPECT_EQ(options.MacenkoReference(), DefaultMacenko());
  EXPECT_TRUE(MacenkoFromValues(ValuesOf(DefaultMacenko())).ok());
  EXPECT_TRUE(ReinhardFromValues(ValuesOf(DefaultReinhard())).ok());
}

TEST(StainNormalize, ReferenceMayBeNumbers) {
  const auto checked = Checked({{"reference_fit", {0.6, 0.8, 0.0, 0.0, 1.0, 0.0, 2.0, 1.0}}});
  ASSERT_TRUE(checked.ok()) << checked.status();
  const MacenkoFit fit = StainNormalizeOptions::FromJson(*checked).MacenkoReference();
  EXPECT_EQ(fit.stains[0][1], 0.8);
  EXPECT_EQ(fit.max_concentrations[0], 2.0);
}

TEST(StainNormalize, WrongOptionsAreRefusedByName) {
  EXPECT_NE(Refusal({{"profile", "vahadane"}}).find("profile"), std::string::npos);
  EXPECT_NE(Refusal({{"reference", ""}}).find("empty path"), std::string::npos);
  EXPECT_NE(Refusal({{"reference_fit", {1.0, 2.0}}}).find("expected 8 numbers"), std::string::npos);
  EXPECT_NE(Refusal({{"profile", "reinhard"}, {"reference_fit", {1, 2, 3, 4, 0, 5}}})
                .find("deviations must be above 0"),
            std::string::npos);
  EXPECT_NE(Refusal({{"reference_fit", {0.6, 0.8, 0, 0.6, 0.8, 0, 2, 1}}}).find("the same"),
            std::string::npos);
  EXPECT_NE(Refusal({{"reference_fit", {0, 1, 0, 0.6, 0.8, 0, 2, 1}}}).find("hematoxylin"),
            std::string::npos);
  EXPECT_NE(Refusal({{"reference_fit", {1, 1, 0, 0, 1, 0, 2, 1}}}).find("length 1"),
            std::string::npos);
  EXPECT_NE(Refusal({{"reference_fit", {0.6, 0.8, 0, 0, 1, 0, 2, 0}}}).find("above 0"),
            std::string::npos);
  EXPECT_NE(Refusal({{"reference", "cohort"}, {"reference_fit", {0.6, 0.8, 0, 0, 1, 0, 2, 1}}})
                .find("exclude"),
            std::string::npos);
}

TEST(StainNormalize, SettledReferenceReplacesItsName) {
  Json preprocess = Json::array();
  preprocess.push_back({{"stain_normalize", *Checked({{"reference", "cohort"}})}});
  Json augment = Json::array();
  SettleStainReference(preprocess, augment, ValuesOf(DefaultMacenko()));
  const auto found = FindStainNormalize(preprocess, augment);
  ASSERT_TRUE(found.has_value());
  EXPECT_EQ(found->reference, "default");
  EXPECT_EQ(found->MacenkoReference(), DefaultMacenko());
  EXPECT_FALSE(FindStainNormalize(Json::array(), Json::array()).has_value());
}

TEST(StainFit, ComesBackFromJsonAsItWas) {
  StainFit fit;
  fit.macenko = DefaultMacenko();
  fit.macenko.fallback = StainFallback::kOneStain;
  fit.reinhard = DefaultReinhard();
  fit.pixels = 10;
  fit.tissue_pixels = 3;
  const auto back = StainFitFromJson(ToJson(fit));
  ASSERT_TRUE(back.ok()) << back.status();
  EXPECT_EQ(*back, fit);
  Json wrong = ToJson(fit);
  wrong["macenko"]["fallback"] = "bored";
  EXPECT_FALSE(StainFitFromJson(wrong).ok());
  wrong = ToJson(fit);
  wrong["reinhard"]["values"][4] = -1;
  EXPECT_FALSE(StainFitFromJson(wrong).ok());
  EXPECT_FALSE(StainFitFromJson(Json::object()).ok());
}

}  // namespace
}  // namespace patchbay::plan
