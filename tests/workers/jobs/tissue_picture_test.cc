// The small picture that tissue is looked for in, and the published settings by which it is found.
#include "workers/jobs/task/tissue_picture.h"

#include <cstdlib>
#include <filesystem>

#include <gtest/gtest.h>

#include "ops/all_ops.h"
#include "tests/workers/sources/crafted_tiff.h"
#include "workers/jobs/labels/tissue.h"

namespace patchbay::workers {
namespace {

/// A level of so many pixels whose side is a multiple of the finest level's.
struct Level {
  std::uint32_t height, width;
};

StatusOr<TissuePicture> PictureOf(const std::vector<Level>& levels) {
  const TemporaryFolder folder;
  std::vector<CraftedImage> images;
  for (const Level& level : levels) {
    CraftedImage image;
    image.height = level.height;
    image.width = level.width;
    image.subfile = images.empty() ? 0 : 1;
    FillFlat(image);
    images.push_back(std::move(image));
  }
  PB_RETURN_IF_ERROR(WriteTiff(folder.File("a.tif"), images));
  PB_ASSIGN_OR_RETURN(const auto image, OpenImage(Folders::OfThisUser(), folder.File("a.tif")));
  TaskSignals signals;
  TaskContext context{Folders::OfThisUser(), ops::Table()};
  context.signals = &signals;
  return TissuePictureOf(context, *image);
}

TEST(TissuePicture, EachPixelIsTheMeanOfItsSquareAlsoAtTheFarEdges) {
  constexpr std::int64_t kHeight = 50, kWidth = 104, kTile = 16, kAcross = 7;
  const auto picture = PictureOf({{kHeight, kWidth}});
  ASSERT_TRUE(picture.ok()) << picture.status();
  EXPECT_EQ(picture->factor, kTissueDownsample);
  ASSERT_EQ(picture->height, 2);
  ASSERT_EQ(picture->width, 4);
  const ConstTensorView view = picture->View();
  for (std::int64_t y = 0; y < view.shape[0]; ++y) {
    for (std::int64_t x = 0; x < view.shape[1]; ++x) {
      std::int64_t sum = 0, count = 0;
      for (std::int64_t i = y * 32; i < std::min(kHeight, y * 32 + 32); ++i) {
        for (std::int64_t j = x * 32; j < std::min(kWidth, x * 32 + 32); ++j, ++count) {
          sum += FlatValue(static_cast<std::size_t>(i / kTile * kAcross + j / kTile));
        }
      }
      const auto found = std::to_integer<int>(
          view.data[y * view.stride_bytes[0] + x * view.stride_bytes[1] + view.stride_bytes[2]]);
      EXPECT_EQ(found, (sum + count / 2) / count) << y << ", " << x;
    }
  }
}

TEST(TissuePicture, ALevelThatScannersRoundedIsTheOneOf32) {
  const auto rounded = PictureOf({{640, 1601}, {20, 50}});
  ASSERT_TRUE(rounded.ok()) << rounded.status();
  EXPECT_EQ(rounded->level, 1);
  EXPECT_EQ(rounded->factor, 1);
  const auto coarser = PictureOf({{660, 1650}, {20, 50}});  // 33 is another level
  ASSERT_TRUE(coarser.ok()) << coarser.status();
  EXPECT_EQ(coarser->level, 0);
}

TEST(TissueProfiles, HaveThePublishedSettings) {
  const auto options = [](const char* name) { return TissueProfileOf(name).value().options; };
  const ops::TissueMaskOptions clam = options("clam"), tiatoolbox = options("tiatoolbox"),
                               histolab = options("histolab");
  EXPECT_EQ(clam.channel, ops::TissueChannel::kSat);
  EXPECT_EQ(clam.median_k, 11);
  EXPECT_EQ(clam.fixed_threshold, 15);
  EXPECT_EQ(clam.close_um, 32);
  EXPECT_EQ(clam.min_area_um2, 16'384);
  EXPECT_EQ(clam.max_hole_um2, 16'384);
  EXPECT_EQ(tiatoolbox.channel, ops::TissueChannel::kGrey);
  EXPECT_EQ(tiatoolbox.median_k, 1);
  EXPECT_EQ(tiatoolbox.close_um, 32);
  EXPECT_EQ(tiatoolbox.min_area_um2, 804);
  EXPECT_EQ(histolab.channel, ops::TissueChannel::kGrey);
  EXPECT_EQ(histolab.median_k, 1);
  EXPECT_EQ(histolab.close_um, 88);
  EXPECT_EQ(histolab.min_area_um2, 192'000);
  EXPECT_EQ(histolab.max_hole_um2, 192'000);
  for (const auto& other : {tiatoolbox, histolab}) {
    EXPECT_EQ(other.fixed_threshold, ops::TissueMaskOptions().fixed_threshold);
  }
  EXPECT_FALSE(TissueProfileOf("CLAM").ok());
}

TEST(TissueProfiles, OfIhcFindsAPaleBiopsyThatOthersLose) {
  constexpr std::int64_t kHeight = 200, kWidth = 300, kTop = 90, kRows = 5, kLeft = 50,
                         kColumns = 90;
  constexpr std::uint8_t kGlass[] = {243, 242, 240}, kPale[] = {212, 214, 222};
  std::vector<std::uint8_t> picture;
  for (std::int64_t y = 0; y < kHeight; ++y) {
    for (std::int64_t x = 0; x < kWidth; ++x) {
      const bool is_tissue = y >= kTop && y < kTop + kRows && x >= kLeft && x < kLeft + kColumns;
      for (int c = 0; c < 3; ++c) picture.push_back((is_tissue ? kPale : kGlass)[c]);
    }
  }
  const TensorView view = ContiguousView<3>(reinterpret_cast<std::byte*>(picture.data()),
                                            DType::kUint8, {kHeight, kWidth, 3});
  const auto tissue = [&](const char* profile) {
    return ops::MakeTissueMask(view, 16.0, TissueProfileOf(profile).value().options)
        .value()
        .tissue_pixels;
  };
  EXPECT_EQ(tissue("clam"), 0);
  EXPECT_EQ(tissue("histolab"), 0);
  EXPECT_NEAR(static_cast<double>(tissue("ihc")), kRows * kColumns, 10);
}

TEST(TissueProfiles, OptionsThatAreSetReplaceTheirOwn) {
  const TissueProfile clam = TissueProfileOf("clam").value();
  EXPECT_EQ(WithOptions(clam, {}).value().options, clam.options);
  EXPECT_FALSE(WithOptions(clam, {}).value().needs_mpp);
  const auto set = ParseTissueOptions(
      {"threshold=otsu", "channel=grey", "blur=3", "closing=5", "min-area=0", "pen=no", "black=0"});
  ASSERT_TRUE(set.ok()) << set.status();
  const TissueProfile own = WithOptions(clam, *set).value();
  EXPECT_TRUE(own.needs_mpp);
  EXPECT_EQ(own.options.channel, ops::TissueChannel::kGrey);
  EXPECT_EQ(own.options.fixed_threshold, std::nullopt);
  EXPECT_EQ(own.options.median_k, 3);
  EXPECT_EQ(own.options.close_um, 5);
  EXPECT_EQ(own.options.min_area_um2, 0);
  EXPECT_EQ(own.options.max_hole_um2, clam.options.max_hole_um2);
  EXPECT_FALSE(own.options.pen);
  EXPECT_EQ(own.options.black, 0);
}

}  // namespace
}  // namespace patchbay::workers
