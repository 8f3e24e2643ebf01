// The results of spectra for people: the objects of spectra.json, the slides that stand out, the
// table.
#include "workers/jobs/spectra/figures.h"

#include <gtest/gtest.h>

#include "runtime/format/json/described.h"
#include "runtime/model/results/spectra_document.h"
#include "tests/workers/jobs/spectra/fixtures.h"

namespace patchbay::workers {
namespace {

/// A slide of one frame whose every coefficient has the same level.
SlideSpectra LevelSlide(const std::string& id, std::uint64_t level_db, std::optional<double> mpp,
                        const plan::SpectralOptions& options = {}) {
  SlideSpectra slide;
  slide.id = id;
  slide.height = 300;
  slide.width = 390;
  slide.channels = 3;
  slide.mpp = mpp;
  const auto side = static_cast<std::uint64_t>(options.frame);
  for (int channel = 0; channel < plan::SpectralChannels(options); ++channel) {
    ops::SpectralSums& sums = slide.sums.emplace_back(options);
    const std::uint64_t q = level_db * ops::kSpectralSteps;
    sums.frames = 1;
    sums.sum_q = absl::uint128(q) * side * side;
    sums.sum_qq = absl::uint128(q) * q * side * side;
    sums.histogram[level_db * 4] = side * side;
    for (std::size_t k = 1; k < sums.ring_power.size(); ++k) sums.ring_power[k] = 1u << 20;
  }
  return slide;
}

std::vector<results::SpectraSlide> SlidesOfLevels(const std::vector<std::uint64_t>& levels) {
  std::vector<results::SpectraSlide> slides;
  for (std::size_t i = 0; i < levels.size(); ++i) {
    slides.push_back(*SlideFigures(LevelSlide(StrCat("s", i), levels[i], 0.5), {}));
  }
  MarkOutliers(slides);
  return slides;
}

TEST(SpectraFigures, ASlideSaysWhatItsSumsSay) {
  const Json json = JsonOf(*SlideFigures(LevelSlide("0123456789abcdef", 40, 0.25), {}));
  EXPECT_EQ(json["mean_db"], 40.0);
  EXPECT_EQ(json["std_db"], 0.0);
  EXPECT_EQ(json["frames"], 1);
  EXPECT_EQ(json["remainder"], (Json{{"right", 390 - 256 - 128}, {"bottom", 300 - 256}}));
  EXPECT_EQ(json["radial"]["unit"], "cycles/um");
  EXPECT_EQ(json["radial"]["frequency_step"], 1.0 / 256 / 0.25);
  EXPECT_EQ(json["radial"]["power"].size(), 128u);
  EXPECT_EQ(json["histogram"]["counts"].size(), 640u);
  const Json lacking = JsonOf(*SlideFigures(LevelSlide("0", 40, std::nullopt), {}));
  EXPECT_EQ(lacking["mpp"], nullptr);
  EXPECT_EQ(lacking["radial"]["unit"], "cycles/pixel");
  EXPECT_EQ(lacking["radial"]["frequency_step"], 1.0 / 256);
}

TEST(SpectraFigures, ACohortOfOnePixelSizeHasItAndAMixedOneHasNot) {
  const auto mpp_of = [](const std::vector<std::optional<double>>& slides) {
    CohortFigures cohort{plan::SpectralOptions{}};
    for (const auto& mpp : slides) EXPECT_TRUE(cohort.Add(LevelSlide("0", 30, mpp)).ok());
    const Json json = JsonOf(*cohort.Finish({}));
    EXPECT_EQ(json["radial"]["unit"], json["mpp"].is_null() ? "cycles/pixel" : "cycles/um");
    EXPECT_EQ(json["slides"], slides.size());
    EXPECT_EQ(json["frames"], slides.size());
    return json["mpp"];
  };
  EXPECT_EQ(mpp_of({0.25, 0.25}), 0.25);
  EXPECT_NEAR(mpp_of({0.2500, 0.2520}).get<double>(), 0.251, 1e-9);
  EXPECT_EQ(mpp_of({0.25, 0.5}), nullptr);
  EXPECT_EQ(mpp_of({0.25, std::nullopt}), nullptr);
  EXPECT_EQ(mpp_of({std::nullopt}), nullptr);
  EXPECT_FALSE(CohortFigures{plan::SpectralOptions{}}.Finish({})->has_value());
}

TEST(SpectraFigures, ChannelsStandBesideTheirMerge) {
  plan::SpectralOptions rgb;
  rgb.channel = plan::SpectralChannel::kRgb;
  SlideSpectra slide = LevelSlide("0", 30, 0.5, rgb);
  slide.sums[2] = LevelSlide("0", 60, 0.5, rgb).sums[2];
  const Json json = JsonOf(*SlideFigures(slide, rgb));
  EXPECT_EQ(json["frames"], 1);
  EXPECT_EQ(json["mean_db"], 40.0);
  EXPECT_EQ(json["channels"]["red"]["mean_db"], 30.0);
  EXPECT_EQ(json["channels"]["blue"]["mean_db"], 60.0);
}

using Reasons = std::vector<std::string>;

TEST(SpectraFigures, ASlideFarFromTheOthersStandsOutWhenThereAreFive) {
  for (const auto& slide : SlidesOfLevels({40, 40, 41, 90})) EXPECT_FALSE(slide.outlier);
  EXPECT_EQ(SlidesOfLevels({40, 40, 41, 41, 90})[4].outlier_reasons, Reasons{"mean high"});
  const auto more = SlidesOfLevels({40, 40, 41, 41, 41, 40, 90});
  EXPECT_EQ(more[6].outlier_reasons, Reasons{"mean high"});
  for (std::size_t i = 0; i < 6; ++i) EXPECT_FALSE(more[i].outlier);
  EXPECT_EQ(SlidesOfLevels({40, 40, 41, 41, 41, 40, 9})[6].outlier_reasons, Reasons{"mean low"});
}

TEST(SpectraFigures, AFlatSlideStandsOutInAnyCompanyAndDoesNotCountAsUsual) {
  const auto slides = SlidesOfLevels({0, 40});
  EXPECT_EQ(slides[0].outlier_reasons, Reasons{"flat"});
  EXPECT_TRUE(slides[0].outlier);
  EXPECT_FALSE(slides[1].outlier);
  EXPECT_FALSE(SlidesOfLevels({0, 0, 0, 0, 0, 40, 90})[6].outlier);
}

TEST(SpectraFigures, TheTableHasARowASlide) {
  std::vector<results::SpectraSlide> slides = SlidesOfLevels({0, 40});
  slides[1].mpp.reset();
  const auto rows = ParseCsv(SpectraCsv(slides));
  ASSERT_EQ(rows.size(), 3u);
  EXPECT_EQ(StrJoin(rows[0], ","),
            "id,frames,frames_skipped,frames_off_tissue,width,height,remainder_right,"
            "remainder_bottom,mpp,mean_db,std_db,p1,p5,p25,p50,p75,p95,p99,focus_db,outlier,"
            "outlier_reasons");
  EXPECT_EQ(rows[1][0], "s0");
  EXPECT_EQ(rows[1][8], "0.5");
  EXPECT_EQ(rows[1][20], "flat");
  EXPECT_EQ(rows[2][8], "");
  EXPECT_EQ(rows[2][9], "40.0");
  EXPECT_EQ(rows[2][19], "false");
}

TEST(SpectraFigures, WhatIsPublishedIsWhatTheSchemaSays) {
  TemporaryFolder folder;
  ASSERT_TRUE(WriteTiff(folder.File("a.tif"), {PatternImage(500, 400)}).ok());
  ASSERT_TRUE(WriteTiff(folder.File("b.tif"), {PatternImage(300, 700, 128, 3, 4)}).ok());
  ASSERT_TRUE(WriteTiff(folder.File("small.tif"), {PatternImage(100, 100)}).ok());
  for (const char* channel : {"grey", "rgb"}) {
    const std::string out = folder.File(StrCat(".", channel));
    RunSpectraJob(SpectraManifestFor({folder.path()}, out), {{"channel", channel}});
    const auto document =
        results::ReadSpectraDocument(Folders::OfThisUser(), out + "/spectra.json");
    ASSERT_TRUE(document.ok()) << Describe(document.status());
    EXPECT_EQ(document->slides.size(), 2u);
    EXPECT_EQ(document->failed.size(), 1u);
    EXPECT_EQ(document->slides[0].Channels().size(), channel == std::string("rgb") ? 3u : 0u);
    EXPECT_LT(document->slides[0].id, document->slides[1].id);
  }
}

}  // namespace
}  // namespace patchbay::workers
