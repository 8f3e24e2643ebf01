// A plan's facts on its images' colours: fits of the profile that is asked for, ICC lookups, and
// refusals.
#include <gtest/gtest.h>

#include "runtime/core/hash.h"
#include "runtime/model/plan/plan.h"
#include "runtime/model/plan/run_config.h"
#include "tests/contract/known_ops.h"

namespace patchbay::plan {
namespace {

RunConfig ColoursConfig(const char* preprocess) {
  const auto config = RunConfigFromJson({{"dataset", {"a"}},
                                         {"numerics", "cpu"},
                                         {"patch", {{"size", {64, 64}}}},
                                         {"batch", {{"global_size", 4}}},
                                         {"preprocess", Json::parse(preprocess)}});
  EXPECT_TRUE(config.ok()) << config.status();
  return *config;
}

PlannedImage ColouredImage() {
  PlannedImage image;
  image.digest = Sha256Of("a");
  image.kind = "zarr";
  image.size = Flat(640, 640);
  return image;
}

std::string ColoursRefusal(const char* preprocess, const PlannedImage& image) {
  return std::string(Plan::Build(ColoursConfig(preprocess), {image}).status().message());
}

TEST(ImageColours, ReinhardNeedsItsOwnFitAndCarriesNoOther) {
  const char* const reinhard = R"([{"stain_normalize": {"profile": "reinhard"}}])";
  PlannedImage image = ColouredImage();
  image.macenko = DefaultMacenko();
  EXPECT_NE(ColoursRefusal(reinhard, image).find("image 0: it has no stain fit"),
            std::string::npos);
  image.reinhard = DefaultReinhard();
  image.reinhard->fallback = StainFallback::kOneStain;
  const auto plan = Plan::Build(ColoursConfig(reinhard), {image});
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_FALSE(plan->images()[0].macenko.has_value());
  const auto again = ParsePlan(plan->Text());
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_EQ(again->images()[0].reinhard, image.reinhard);
  image.macenko.reset();
  EXPECT_NE(ColoursRefusal(R"([{"stain_normalize": {}}])", image).find("no stain fit"),
            std::string::npos);
}

TEST(ImageColours, ImagesNameTheReferenceOfTheirScanner) {
  const std::string numbers = DumpJson(ValuesOf(DefaultMacenko()));
  const std::string by_scanner =
      R"([{"stain_normalize": {"scanner_fits": {"0": )" + numbers + R"(, "1": )" + numbers + "}}}]";
  PlannedImage image = ColouredImage();
  image.macenko = DefaultMacenko();
  image.stain_reference = 1;
  const auto plan = Plan::Build(ColoursConfig(by_scanner.c_str()), {image});
  ASSERT_TRUE(plan.ok()) << plan.status();
  const auto again = ParsePlan(plan->Text());
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_EQ(again->images()[0].stain_reference, 1u);
  EXPECT_EQ(again->digest(), plan->digest());
  image.macenko->fallback = StainFallback::kOneStain;
  const auto flagged = ParsePlan(Plan::Build(ColoursConfig(by_scanner.c_str()), {image})->Text());
  EXPECT_EQ(flagged->images()[0].macenko->fallback, StainFallback::kOneStain);
  EXPECT_EQ(flagged->images()[0].stain_reference, 1u);
  image.stain_reference = 0;
  image.macenko->fallback = StainFallback::kNone;
  EXPECT_NE(Plan::Build(ColoursConfig(by_scanner.c_str()), {image})->digest(), plan->digest());
  image.stain_reference = 2;
  EXPECT_NE(ColoursRefusal(by_scanner.c_str(), image).find("no reference 2"), std::string::npos);
  EXPECT_NE(ColoursRefusal(R"([{"stain_normalize": {"scanners": {"0": "default"}}}])", image)
                .find("not decided"),
            std::string::npos);
  // Without scanners the number says nothing, and is not part of the text.
  const auto single = Plan::Build(ColoursConfig(R"([{"stain_normalize": {}}])"), {image});
  ASSERT_TRUE(single.ok()) << single.status();
  EXPECT_EQ(single->images()[0].stain_reference, 0u);
}

TEST(ImageColours, ImagesWithoutAFitStayUnnormalisedWhereTheConfigHasItSo) {
  const char* const skip = R"([{"stain_normalize": {"misfit": "skip"}}])";
  PlannedImage image = ColouredImage(), fitted = ColouredImage();
  fitted.macenko = DefaultMacenko();
  const auto plan = Plan::Build(ColoursConfig(skip), {image, fitted});
  ASSERT_TRUE(plan.ok()) << plan.status();
  const auto again = ParsePlan(plan->Text());
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_FALSE(again->images()[0].macenko.has_value());
  EXPECT_EQ(again->images()[1].macenko, fitted.macenko);
  EXPECT_NE(Plan::Build(ColoursConfig(skip), {fitted, fitted})->digest(), plan->digest());
  EXPECT_NE(
      ColoursRefusal(R"([{"stain_normalize": {"misfit": "keep"}}])", image).find("no stain fit"),
      std::string::npos);
  const std::string numbers = DumpJson(ValuesOf(DefaultMacenko()));
  const std::string by_scanner =
      R"([{"stain_normalize": {"misfit": "skip", "scanner_fits": {"0": )" + numbers + R"(, "1": )" +
      numbers + "}}}]";
  image.stain_reference = 1;
  const auto numbered = ParsePlan(Plan::Build(ColoursConfig(by_scanner.c_str()), {image})->Text());
  EXPECT_EQ(numbered->images()[0].stain_reference, 1u);
  // The default is not part of the text: it changes no plan of before.
  EXPECT_EQ(Plan::Build(ColoursConfig(R"([{"stain_normalize": {"misfit": "refuse"}}])"), {fitted})
                ->Text(),
            Plan::Build(ColoursConfig(R"([{"stain_normalize": {}}])"), {fitted})->Text());
  EXPECT_EQ(
      Plan::Build(ColoursConfig(R"([{"stain_normalize": {}}])"), {fitted})->Text().find("misfit"),
      std::string::npos);
}

TEST(ImageColours, IccLookupsAreNamedByTheirDigest) {
  PlannedImage image = ColouredImage();
  const char* const op = R"([{"icc_to_srgb": {}}])";
  EXPECT_NE(ColoursRefusal(op, image).find("not looked at"), std::string::npos);
  image.icc = ImageIcc{Sha256Of("lookup"), IccFallback::kNone};
  const auto plan = Plan::Build(ColoursConfig(op), {image});
  ASSERT_TRUE(plan.ok()) << plan.status();
  const auto again = ParsePlan(plan->Text());
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_EQ(again->images()[0].icc, image.icc);
  PlannedImage other = image;
  other.icc->lookup = Sha256Of("another");
  EXPECT_NE(Plan::Build(ColoursConfig(op), {other})->digest(), plan->digest());
  EXPECT_FALSE(Plan::Build(ColoursConfig("[]"), {image})->images()[0].icc.has_value());
}

TEST(ImageColours, ImagesWithoutALookupAreFlaggedOrRefused) {
  PlannedImage image = ColouredImage();
  for (const IccFallback fallback : {IccFallback::kNoProfile, IccFallback::kUnusable}) {
    image.icc = ImageIcc{{}, fallback};
    const auto plan = Plan::Build(ColoursConfig(R"([{"icc_to_srgb": {}}])"), {image});
    ASSERT_TRUE(plan.ok()) << plan.status();
    EXPECT_EQ(ParsePlan(plan->Text())->images()[0].icc, image.icc);
    EXPECT_NE(
        ColoursRefusal(R"([{"icc_to_srgb": {"missing": "refuse"}}])", image).find(NameOf(fallback)),
        std::string::npos);
  }
  image.channels = 1;
  EXPECT_NE(ColoursRefusal(R"([{"icc_to_srgb": {}}])", image).find("three channels of uint8"),
            std::string::npos);
  EXPECT_FALSE(ImageIccFromJson("none").ok());
  EXPECT_FALSE(ImageIccFromJson(7).ok());
  EXPECT_FALSE(ImageIccFromJson("no profile").ok());
}

}  // namespace
}  // namespace patchbay::plan
