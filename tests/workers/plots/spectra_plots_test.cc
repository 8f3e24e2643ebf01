// The pictures of an analysis: their number and contents.
#include "workers/plots/spectra_plots.h"

#include <gtest/gtest.h>

#include "tests/runtime/model/results/spectra_documents.h"
#include "tests/workers/plots/picture.h"
#include "workers/plots/page.h"

namespace patchbay::workers {
namespace {

using results::DocumentOptions;
using results::MadeDocument;

/// A document that a job could have written.
results::SpectraDocument Parsed(const Json& json) {
  auto document = results::ParseSpectraDocument(json, "t");
  EXPECT_TRUE(document.ok()) << document.status();
  return document.ok() ? *std::move(document) : results::SpectraDocument();
}

std::vector<DrawnPicture> Draw(const Json& document) {
  const auto files = DrawSpectraPlots(Parsed(document));
  EXPECT_TRUE(files.ok()) << files.status();
  std::vector<DrawnPicture> pictures;
  if (!files.ok()) return pictures;
  for (const PlotFile& file : *files) pictures.push_back(ReadPicture(file.png));
  return pictures;
}

TEST(SpectraPlots, ThereAreThreeAndTheyAreTheSameBytesEveryTime) {
  const auto files = DrawSpectraPlots(Parsed(MadeDocument(3))),
             again = DrawSpectraPlots(Parsed(MadeDocument(3)));
  ASSERT_TRUE(files.ok() && again.ok());
  ASSERT_EQ(files->size(), 3u);
  const char* const names[] = {"histogram.png", "radial.png", "cohort.png"};
  for (std::size_t i = 0; i < 3; ++i) {
    EXPECT_EQ((*files)[i].name, names[i]);
    EXPECT_EQ((*files)[i].png, (*again)[i].png);
  }
}

TEST(SpectraPlots, WithoutASlideThereIsNothingToDraw) {
  const auto files = DrawSpectraPlots(Parsed(MadeDocument(0)));
  ASSERT_TRUE(files.ok()) << files.status();
  EXPECT_TRUE(files->empty());
}

TEST(SpectraPlots, TheMeanStandsFurtherRightWhereItIsHigher) {
  // 1.5 dB apart on the same scale of 110 dB: 1140 pixels of panel.
  Json low = MadeDocument(1), high = low;
  high["slides"][0]["mean_db"] = high["cohort"]["mean_db"] = 55;
  const int left = Draw(low)[0].ColumnOf(kAccent), right = Draw(high)[0].ColumnOf(kAccent);
  const DrawnPicture picture = Draw(low)[0];
  EXPECT_GT(right, left);
  // The axis begins at 0 dB at column 130: the mean lies in proportion.
  EXPECT_NEAR(static_cast<double>(right - 130) / (left - 130), 55.0 / 40, 0.01);
}

TEST(SpectraPlots, OnlyOutliersAreMarkedInTheCohort) {
  EXPECT_EQ(Draw(MadeDocument(8))[2].Count(kAccent), 0);
  DocumentOptions options;
  options.outlier = 3;
  EXPECT_GT(Draw(MadeDocument(8, 0.1, options))[2].Count(kAccent), 300);
  EXPECT_GT(Draw(MadeDocument(80, 0.1, options))[2].Count(kAccent), 200);
}

TEST(SpectraPlots, EverySlideHasALineUntilThereAreTooMany) {
  const std::vector<DrawnPicture> few = Draw(MadeDocument(3)), many = Draw(MadeDocument(60, 0.5));
  ASSERT_EQ(few.size(), 3u);
  ASSERT_EQ(many.size(), 3u);
  EXPECT_GT(Draw(MadeDocument(40))[2].height, few[2].height) << "a row a slide";
  EXPECT_GT(many[0].Count({217, 219, 221}), 500) << "a band in grey: " << many[0].width;
}

TEST(SpectraPlots, ColourChannelsHaveTheirColours) {
  DocumentOptions options;
  options.rgb = true;
  const Color red = {190, 40, 40};
  EXPECT_GT(Draw(MadeDocument(2, 0.1, options))[0].Count(red), 200);
  EXPECT_EQ(Draw(MadeDocument(2))[0].Count(red), 0);
}

TEST(SpectraPlots, AMissingPixelSizeIsSaidInColour) {
  DocumentOptions options;
  options.mpp = false;
  const int said = Draw(MadeDocument(2, 0.1, options))[1].Count(kAccent);
  EXPECT_GT(said, Draw(MadeDocument(2))[1].Count(kAccent) + 200);
}

TEST(SpectraPlots, ConstantSlidesAndLongNamesAreDrawn) {
  Json document = MadeDocument(6);
  for (Json* part : {&document["slides"][2], &document["cohort"]}) {
    for (Json& power : (*part)["radial"]["power"]) power = 0;
    (*part)["mean_db"] = (*part)["std_db"] = 0;
    (*part)["focus_db"] = -150;
    const std::int64_t total = (*part)["frames"].get<std::int64_t>() * 64 * 64;
    for (Json& count : (*part)["histogram"]["counts"]) count = 0;
    (*part)["histogram"]["counts"][0] = total;
    for (Json& level : (*part)["percentiles"]) level = 0.1;
  }
  document["slides"][2]["outlier"] = true;
  document["slides"][2]["outlier_reasons"] = {"flat"};
  document["slides"][0]["id"] = std::string(250, 'W');
  document["slides"][1]["id"] = "~!@#$%^&*()_+{}|:\"<>?`-=[]\\;',./";
  for (const DrawnPicture& picture : Draw(document)) {
    ASSERT_GT(picture.width, 0);
    // Text that ran over the edge would colour it.
    for (int y = 0; y < picture.height; ++y) {
      ASSERT_TRUE(picture.IsAt(0, y, kWhite)) << y;
      ASSERT_TRUE(picture.IsAt(picture.width - 1, y, kWhite)) << y;
    }
  }
}

}  // namespace
}  // namespace patchbay::workers
