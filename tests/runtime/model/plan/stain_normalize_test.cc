#include <gtest/gtest.h>

#include "ops/all_ops.h"
#include "runtime/core/strings.h"
#include "runtime/format/yaml/key_table.h"
#include "runtime/model/ops/stain_references.h"

namespace patchbay::plan {
namespace {

StatusOr<Json> Checked(const Json& options) {
  return config::ValidateJson(options, ops::Table().Find("stain_normalize")->keys,
                              "stain_normalize");
}

std::string StainRefusal(const Json& options) {
  return std::string(Checked(options).status().message());
}

TEST(StainNormalize, SilentOptionsMeanTheShippedMacenkoReference) {
  const auto checked = Checked(Json::object());
  ASSERT_TRUE(checked.ok()) << checked.status();
  const auto options = StainReferences::FromJson(*checked);
  EXPECT_EQ(options.profile, StainProfile::kMacenkoCucim);
  EXPECT_EQ(options.MacenkoReferences().at(0), DefaultMacenko());
  EXPECT_TRUE(MacenkoFromValues(ValuesOf(DefaultMacenko())).ok());
  EXPECT_TRUE(ReinhardFromValues(ValuesOf(DefaultReinhard())).ok());
}

TEST(StainNormalize, ReferenceMayBeNumbers) {
  const auto checked = Checked({{"reference_fit", {0.6, 0.8, 0.0, 0.0, 1.0, 0.0, 2.0, 1.0}}});
  ASSERT_TRUE(checked.ok()) << checked.status();
  const MacenkoFit fit = StainReferences::FromJson(*checked).MacenkoReferences().at(0);
  EXPECT_EQ(fit.stains[0][1], 0.8);
  EXPECT_EQ(fit.max_concentrations[0], 2.0);
}

TEST(StainNormalize, WrongOptionsAreRefusedByName) {
  EXPECT_NE(StainRefusal({{"profile", "vahadane"}}).find("profile"), std::string::npos);
  EXPECT_NE(StainRefusal({{"reference", ""}}).find("empty path"), std::string::npos);
  EXPECT_NE(StainRefusal({{"reference_fit", {1.0, 2.0}}}).find("expected 8 numbers"),
            std::string::npos);
  EXPECT_NE(StainRefusal({{"profile", "reinhard"}, {"reference_fit", {1, 2, 3, 4, 0, 5}}})
                .find("deviations must be above 0"),
            std::string::npos);
  EXPECT_NE(StainRefusal({{"reference_fit", {0.6, 0.8, 0, 0.6, 0.8, 0, 2, 1}}}).find("the same"),
            std::string::npos);
  EXPECT_NE(StainRefusal({{"reference_fit", {0, 1, 0, 0.6, 0.8, 0, 2, 1}}}).find("hematoxylin"),
            std::string::npos);
  EXPECT_NE(StainRefusal({{"reference_fit", {1, 1, 0, 0, 1, 0, 2, 1}}}).find("length 1"),
            std::string::npos);
  EXPECT_NE(StainRefusal({{"reference_fit", {0.6, 0.8, 0, 0, 1, 0, 2, 0}}}).find("above 0"),
            std::string::npos);
  EXPECT_NE(StainRefusal({{"reference", "cohort"}, {"reference_fit", {0.6, 0.8, 0, 0, 1, 0, 2, 1}}})
                .find("exclude"),
            std::string::npos);
}

TEST(StainNormalize, SettledReferenceReplacesItsName) {
  OpLists config{.ops = &ops::Table()};
  config.preprocess.push_back({{"stain_normalize", *Checked({{"reference", "cohort"}})}});
  SettleStainReference(config, "", ValuesOf(DefaultMacenko()));
  const auto found = FindStainReferences(config);
  ASSERT_TRUE(found.has_value());
  EXPECT_EQ(found->reference, "default");
  EXPECT_EQ(found->MacenkoReferences().at(0), DefaultMacenko());
  EXPECT_FALSE(FindStainReferences({.ops = &ops::Table()}).has_value());
}

TEST(StainNormalize, ScannersAreSettledAndNumbered) {
  const Json numbers = ValuesOf(DefaultMacenko());
  const auto checked = Checked({{"scanners", {{"at2", "cohort"}, {"s360", "default"}}},
                                {"scanner_fits", {{"vs200", numbers}}},
                                {"scanner_column", "device"}});
  ASSERT_TRUE(checked.ok()) << checked.status();
  OpLists config{.ops = &ops::Table()};
  config.augment.push_back({{"stain_normalize", *checked}});
  EXPECT_EQ(FindStainOp(config).key, "augment[0].stain_normalize");
  EXPECT_TRUE(FindStainReferences(config)->NeedsCohort());
  EXPECT_EQ(FindStainReferences(config)->Unsettled().size(), 2u);
  NumberScanners(config, {"vs200", "at2"});  // no slide is of the third
  Json medians = numbers;
  medians[6] = 1.5;
  SettleCohortReferences(config, medians);
  const auto settled = *FindStainReferences(config);
  EXPECT_TRUE(settled.Unsettled().empty());
  EXPECT_EQ(settled.scanner_column, "scanner");
  ASSERT_EQ(settled.ReferenceCount(), 2u);
  EXPECT_EQ(settled.MacenkoReferences()[0], DefaultMacenko());
  EXPECT_EQ(settled.MacenkoReferences()[1].max_concentrations[0], 1.5);
}

TEST(StainNormalize, WrongScannersAreRefusedByName) {
  const std::string fits = R"("scanner_fits": {"a": [0.6, 0.8, 0, 0, 1, 0, 2, 1]})";
  std::string many;
  for (std::size_t i = 0; i <= kMaxScanners; ++i)
    many += StrCat(i == 0 ? "" : ",", "\"s", i, "\": \"x\"");
  const std::pair<std::string, const char*> cases[] = {
      {R"("scanners": {"a": ""})", "scanners.a: an empty path"},
      {StrCat("\"scanners\": {", many, "}"), "more than 64"},
      {StrCat(R"("scanners": {"a": "cohort"}, )", fits), "'a' is in scanner_fits too"},
      {R"("scanners": {"a": "cohort"}, "reference": "cohort")", "exclude reference"},
      {StrCat(fits, R"(, "reference_fit": [0.6, 0.8, 0, 0, 1, 0, 2, 1])"), "exclude reference"},
      {R"("scanner_fits": {"a": [1, 2]})", "scanner_fits.a: stain fit: expected 8 numbers"},
      {StrCat(R"("profile": "reinhard", )", fits), "expected 6 numbers"},
      {R"("scanner_column": "")", "scanner_column: an empty name"}};
  for (const auto& [options, cause] : cases) {
    const std::string said = StainRefusal(Json::parse(StrCat("{", options, "}")));
    EXPECT_NE(said.find(cause), std::string::npos) << options << ": " << said;
  }
}

TEST(StainFit, ComesBackFromJsonAsItWas) {
  StainFit fit;
  fit.macenko = DefaultMacenko();
  fit.macenko.fallback = StainFallback::kOneStain;
  fit.reinhard = DefaultReinhard();
  fit.pixels = 10;
  fit.tissue_pixels = 3;
  const auto back = FromJson<StainFit>(JsonOf(fit), "sample");
  ASSERT_TRUE(back.ok()) << back.status();
  EXPECT_EQ(*back, fit);
  EXPECT_EQ(
      DumpJson(JsonOf(fit)),
      R"({"macenko":{"fallback":"one_stain","values":[0.5626,0.7201,0.4062,0.2159,0.8012,0.5581,)"
      R"(1.9705,1.0308]},"pixels":10,"reinhard":{"values":[53.195,34.041,-13.638,11.282,6.053,)"
      R"(4.423]},"tissue_pixels":3})");
  Json wrong = JsonOf(fit);
  wrong["macenko"]["fallback"] = "bored";
  EXPECT_EQ(MessageOf(FromJson<StainFit>(wrong, "sample").status()),
            "sample: key 'macenko': stain fit: key 'fallback': expected one of its names");
  wrong = JsonOf(fit);
  wrong["reinhard"]["values"][4] = -1;
  EXPECT_FALSE(FromJson<StainFit>(wrong, "sample").ok());
  EXPECT_FALSE(FromJson<StainFit>(Json::object(), "sample").ok());
}

}  // namespace
}  // namespace patchbay::plan
