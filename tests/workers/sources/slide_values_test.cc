// The readers against other packages' results for the same files.
#include <cmath>
#include <filesystem>
#include <fstream>
#include <iterator>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/workers/sources/python_oracle.h"
#include "tests/workers/sources/slide_fixtures.h"
#include "workers/sources/openslide_source.h"
#include "workers/sources/tiff_source.h"

namespace patchbay::workers {
namespace {

#define SKIP_WITHOUT_DATA()                                                            \
  if (TestDataFolder().empty() || !std::filesystem::exists(TestDataFolder() + "/wsi")) \
  GTEST_SKIP() << "the third-party slides are not at PATCHBAY_TEST_DATA"

std::string Wsi(const std::string& name) { return TestDataFolder() + "/wsi/" + name; }

struct MeanCase {
  const char* file;
  int level;
  double mean[3];
  double tolerance;
};

class MeanRgb : public testing::TestWithParam<MeanCase> {};

TEST_P(MeanRgb, IsThePublishedOne) {
  SKIP_WITHOUT_DATA();
  const auto image = OpenImage(Folders::OfThisUser(), Wsi(GetParam().file));
  ASSERT_TRUE(image.ok()) << Describe(image.status());
  const LevelLayout& level = (*image)->layout().levels[static_cast<std::size_t>(GetParam().level)];
  PatchReader reader(**image);
  const auto pixels = reader.Read(GetParam().level, Box2D(0, 0, level.size.y, level.size.x), 255);
  ASSERT_TRUE(pixels.ok()) << Describe(pixels.status());
  std::uint64_t sum[3] = {};
  for (std::size_t i = 0; i < (*pixels)->size(); ++i) sum[i % 3] += (**pixels)[i];
  for (int c = 0; c < 3; ++c) {
    EXPECT_NEAR(static_cast<double>(sum[c]) / static_cast<double>(level.size.y * level.size.x),
                GetParam().mean[c], GetParam().tolerance);
  }
}

INSTANTIATE_TEST_SUITE_P(
    Slides, MeanRgb,
    testing::Values(MeanCase{"CMU-1-Small-Region.svs", 0, {214.011, 194.810, 207.904}, 6e-4},
                    MeanCase{"luna-1065626-ihc-j2k33003.svs", 1, {241.935, 242.304, 241.782}, 0.03},
                    MeanCase{"CropBreastSlide-pyramid.tiff", 0, {180.331, 158.870, 208.180}, 6e-4},
                    MeanCase{"tiff-variants/boxes.tiff", 0, {159.089, 163.509, 191.502}, 6e-4}));

TEST(SlideParts, AnIndexThatNamesAFileInAnotherFolderIsRefusedWhereRightsEnd) {
  TemporaryFolder folder;
  const std::string mirax = folder.File("a.mrxs"), specimen = folder.File("b.txt");
  std::filesystem::create_directories(folder.File("a"));
  const auto put = [](const std::string& path, std::string_view text) {
    std::ofstream(path) << text;
  };
  const auto opened = [&](const std::string& path) {
    const Folders allowed({{std::filesystem::canonical(folder.File(".")).string()}, {}});
    return OpenOpenSlideImage(allowed, std::filesystem::canonical(path).string()).status();
  };
  const auto code = [&](const std::string& path) { return opened(path).code(); };
  put(mirax, "mirax");
  for (const auto& [index, expected] :
       {std::pair{"[DATAFILE]\r\nFILE_0 = ../../secret/Data0000.dat\r\n",
                  absl::StatusCode::kPermissionDenied},
        {"[HIERARCHICAL]\nINDEXFILE=/etc/passwd\n", absl::StatusCode::kPermissionDenied},
        {"[DATAFILE]\nFILE_0=Data0000.dat\n[GENERAL]\nDATE=1/2/2012\n",
         absl::StatusCode::kInvalidArgument}}) {
    put(folder.File("a/Slidedat.ini"), index);
    EXPECT_EQ(code(mirax), expected) << index;
  }
  EXPECT_THAT(Describe(opened(mirax)), testing::HasSubstr("SLIDE_VERSION")) << "OpenSlide's words";
  std::filesystem::create_symlink("/etc/passwd", folder.File("a/Data0000.dat"));
  EXPECT_EQ(code(mirax), absl::StatusCode::kPermissionDenied) << "a part by a link";
  for (const auto& [key, expected] :
       {std::pair{"ImageFile(1,0)=../secret/x.jpg", absl::StatusCode::kPermissionDenied},
        {"MapFile=/etc/x.jpg", absl::StatusCode::kPermissionDenied},
        {"CreatedDate=1/2/2012", absl::StatusCode::kInvalidArgument}}) {
    put(specimen, StrCat("[Virtual Microscope Specimen]\n", key, "\n"));
    EXPECT_EQ(code(specimen), expected) << key;
  }
}

/// Crops of every level against OpenSlide, edges included.
void ExpectOpenSlidePixels(const std::string& path, int level, std::uint64_t crops,
                           std::int64_t side) {
  const auto image = OpenImage(Folders::OfThisUser(), path);
  ASSERT_TRUE(image.ok()) << Describe(image.status());
  OpenSlidePeer peer(path);
  ASSERT_TRUE(peer.ok());
  PatchReader reader(**image);
  const LevelLayout& layout = (*image)->layout().levels[static_cast<std::size_t>(level)];
  for (std::uint64_t n = 0; n < crops; ++n) {
    const Box box = RandomBox(11, n, layout, side);
    const auto pixels = reader.Read(level, box, 201);
    ASSERT_TRUE(pixels.ok()) << Describe(pixels.status());
    ASSERT_EQ(CountDifferences(**pixels, peer.ReadArgb(level, box), 201), 0u)
        << "seed 11, crop " << n << ", level " << level << " " << box.ToString();
  }
}

TEST(AperioSlide, CropsEqualOpenSlidePixelForPixel) {
  SKIP_WITHOUT_DATA();
  const char* crops = std::getenv("PATCHBAY_TEST_CROPS");
  ExpectOpenSlidePixels(Wsi("CMU-1-Small-Region.svs"), 0,
                        crops != nullptr ? std::strtoull(crops, nullptr, 10) : 300, 512);
}

TEST(AperioSlide, Jpeg2000CropsEqualOpenSlidePixelForPixel) {
  SKIP_WITHOUT_DATA();
  ExpectOpenSlidePixels(Wsi("luna-1065626-ihc-j2k33003.svs"), 0, 25, 300);
}

TEST(GenericTiff, CropsEqualOpenSlidePixelForPixel) {
  SKIP_WITHOUT_DATA();
  ExpectOpenSlidePixels(Wsi("CropBreastSlide-pyramid.tiff"), 0, 200, 400);
  ExpectOpenSlidePixels(Wsi("tiff-variants/boxes.tiff"), 0, 200, 100);
  ExpectOpenSlidePixels(Wsi("tiff-variants/boxes.tiff"), 1, 200, 100);
}

TEST(AperioSlide, LayoutIsWhatTheFileSays) {
  SKIP_WITHOUT_DATA();
  const auto image = OpenImage(Folders::OfThisUser(), Wsi("CMU-1-Small-Region.svs"));
  ASSERT_TRUE(image.ok()) << Describe(image.status());
  const ImageLayout& layout = (*image)->layout();
  EXPECT_EQ(layout.kind, "aperio");
  EXPECT_EQ(layout.channels, 3);
  ASSERT_EQ(layout.levels.size(), 1u) << "thumbnail, label and macro are not levels";
  EXPECT_EQ(layout.levels[0].size.x, 2220);
  EXPECT_EQ(layout.levels[0].size.y, 2967);
  EXPECT_EQ(layout.levels[0].chunk.x, 240);
  EXPECT_DOUBLE_EQ(layout.spacing.x->Micrometres(), 0.499);
  EXPECT_DOUBLE_EQ(layout.objective_power.value_or(0), 20);
}

TEST(AperioSlide, ReducedLevelsFollowTheThumbnail) {
  SKIP_WITHOUT_DATA();
  const auto image = OpenImage(Folders::OfThisUser(), Wsi("luna-1065626-ihc-j2k33003.svs"));
  ASSERT_TRUE(image.ok()) << Describe(image.status());
  const ImageLayout& layout = (*image)->layout();
  ASSERT_EQ(layout.levels.size(), 2u);
  EXPECT_EQ(layout.levels[1].size.x, 2988);
  EXPECT_EQ(layout.levels[1].size.y, 2562);
  EXPECT_NEAR(layout.levels[1].downsample, 4.0002, 1e-4);
  EXPECT_NEAR(layout.spacing.x->Micrometres(), 0.5026, 1e-9);
}

struct LayoutCase {
  const char* file;
  std::size_t levels;
  int channels;
  std::int64_t height, width;
  std::vector<int> pages;  ///< page of each level, for tifffile; empty where it cannot
};

class TiffVariant : public testing::TestWithParam<LayoutCase> {};

TEST_P(TiffVariant, EqualsTifffileWhole) {
  SKIP_WITHOUT_DATA();
  const LayoutCase& c = GetParam();
  const std::string path = Wsi(std::string("tiff-variants/") + c.file);
  const auto image = OpenImage(Folders::OfThisUser(), path);
  ASSERT_TRUE(image.ok()) << Describe(image.status());
  const ImageLayout& layout = (*image)->layout();
  EXPECT_EQ(layout.kind, "tiff");
  EXPECT_EQ(layout.channels, c.channels);
  ASSERT_EQ(layout.levels.size(), c.levels);
  EXPECT_EQ(layout.levels[0].size.y, c.height);
  EXPECT_EQ(layout.levels[0].size.x, c.width);
  if (!HasPackages("numpy, tifffile, imagecodecs")) {
    GTEST_SKIP() << "no Python with tifffile and imagecodecs at PATCHBAY_PYTHON";
  }
  const TemporaryFolder folder;
  std::string arguments = StrCat(path, " ", folder.path());
  for (int page : c.pages) arguments += StrCat(" ", page);
  ASSERT_TRUE(RunScript("tifffile_oracle.py", arguments));
  PatchReader reader(**image);
  for (std::size_t n = 0; n < c.pages.size(); ++n) {
    const LevelLayout& level = layout.levels[n];
    const auto pixels =
        reader.Read(static_cast<int>(n), Box2D(0, 0, level.size.y, level.size.x), 9);
    ASSERT_TRUE(pixels.ok()) << Describe(pixels.status());
    std::ifstream file(folder.File(StrCat(n, ".raw")), std::ios::binary);
    const std::vector<std::uint8_t> expected{std::istreambuf_iterator<char>(file), {}};
    ASSERT_EQ(expected.size(), (*pixels)->size());
    EXPECT_TRUE(expected == **pixels) << "level " << n;
  }
}

INSTANTIATE_TEST_SUITE_P(
    Files, TiffVariant,
    testing::Values(
        LayoutCase{"BigTIFF.tif", 1, 3, 64, 64, {0}},
        LayoutCase{"BigTIFFLong8Tiles.tif", 1, 3, 64, 64, {0}},
        LayoutCase{"BigTIFFMotorola.tif", 1, 3, 64, 64, {0}},
        LayoutCase{"boxes.tiff", 4, 3, 250, 300, {0, 1, 2, 3}},
        LayoutCase{"grey10kx5k.tif", 1, 1, 5000, 10000, {0}},
        LayoutCase{"quad-tile.jpg.tiff", 1, 3, 384, 512, {0}},
        LayoutCase{"tiff_strip_planar_raw_with_overviews.tif", 5, 3, 374, 278, {0, 1, 2, 3, 4}},
        LayoutCase{"tiff_tiled_planar_lzw.tiff", 1, 3, 374, 278, {0}},
        LayoutCase{"tiff_tiled_ycbcr_jpeg_2x2_sampling.tif", 1, 3, 360, 480, {0}},
        LayoutCase{"tiled-jpeg-ycbcr.tif", 1, 3, 499, 374, {0}},
        LayoutCase{"tiled-rect-rgb-u8.tif", 1, 3, 367, 490, {0}},
        LayoutCase{"yb10kx5k.zstd.tiff", 5, 3, 5000, 10000, {0, 1, 2, 3, 4}}),
    [](const auto& test) {
      std::string name = test.param.file;
      for (char& ch : name) {
        if (std::isalnum(static_cast<unsigned char>(ch)) == 0) ch = '_';
      }
      return name;
    });

TEST(GenericTiff, CropsOfAnyPlaceEqualThoseOfTheWhole) {
  SKIP_WITHOUT_DATA();
  for (const char* name : {"quad-tile.jpg.tiff", "tiff_tiled_ycbcr_jpeg_2x2_sampling.tif",
                           "tiled-jpeg-ycbcr.tif", "tiff_tiled_planar_lzw.tiff"}) {
    const auto image = OpenImage(Folders::OfThisUser(), Wsi(std::string("tiff-variants/") + name));
    ASSERT_TRUE(image.ok()) << Describe(image.status());
    const LevelLayout& level = (*image)->layout().levels[0];
    PatchReader whole_reader(**image), reader(**image);
    const auto whole = whole_reader.Read(0, Box2D(0, 0, level.size.y, level.size.x), 0);
    ASSERT_TRUE(whole.ok()) << Describe(whole.status());
    for (std::uint64_t n = 0; n < 100; ++n) {
      const Box box = RandomBox(5, n, level, 200);
      const auto pixels = reader.Read(0, box, 77);
      ASSERT_TRUE(pixels.ok()) << Describe(pixels.status());
      for (std::int64_t i = 0; i < box.height * box.width * 3; ++i) {
        const std::int64_t y = box.y + i / 3 / box.width, x = box.x + i / 3 % box.width;
        const bool is_inside = y >= 0 && x >= 0 && y < level.size.y && x < level.size.x;
        const std::uint8_t expected =
            is_inside ? (**whole)[static_cast<std::size_t>((y * level.size.x + x) * 3 + i % 3)]
                      : 77;
        ASSERT_EQ((**pixels)[static_cast<std::size_t>(i)], expected)
            << name << " seed 5 crop " << n;
      }
    }
  }
}

TEST(GenericTiff, DecodesIntoAPlanarViewAsIntoAnInterleavedOne) {
  SKIP_WITHOUT_DATA();
  for (const char* name : {"CMU-1-Small-Region.svs", "tiff-variants/boxes.tiff"}) {
    const auto image = OpenImage(Folders::OfThisUser(), Wsi(name));
    ASSERT_TRUE(image.ok()) << Describe(image.status());
    const Box box = Box2D(-10, 130, 100, 200);
    PatchReader reader(**image);
    const auto pixels = reader.Read(0, box, 3);
    ASSERT_TRUE(pixels.ok()) << Describe(pixels.status());
    std::vector<std::byte> planar(static_cast<std::size_t>(box.Pixels() * 3));
    TensorView view = ContiguousView(planar.data(), DType::kUint8,
                                     std::array<std::int64_t, 3>{box.height, box.width, 3});
    view.stride_bytes = {box.width, 1, box.height * box.width};
    const auto scratch = (*image)->MakeScratch();
    ASSERT_TRUE((*image)->Decode(reader.encoded(), view, 3, *scratch).ok());
    for (std::size_t i = 0; i < planar.size() / 3; ++i) {
      for (std::size_t c = 0; c < 3; ++c) {
        ASSERT_EQ(static_cast<std::uint8_t>(planar[c * planar.size() / 3 + i]),
                  (**pixels)[3 * i + c]);
      }
    }
  }
}

TEST(OpenSlideSource, GivesThePixelsOfTheLibrary) {
  SKIP_WITHOUT_DATA();
  const std::string path = Wsi("CropBreastSlide-pyramid.tiff");
  const auto through = OpenOpenSlideImage(Folders::OfThisUser(), path);
  ASSERT_TRUE(through.ok()) << Describe(through.status());
  EXPECT_EQ((*through)->layout().kind, "openslide:generic-tiff");
  const auto ours = OpenTiffImage(Folders::OfThisUser(), path);
  ASSERT_TRUE(ours.ok());
  PatchReader a(**through), b(**ours);
  for (std::uint64_t n = 0; n < 30; ++n) {
    const Box box = RandomBox(3, n, (*ours)->layout().levels[0], 300);
    const auto x = a.Read(0, box, 240), y = b.Read(0, box, 240);
    ASSERT_TRUE(x.ok() && y.ok());
    ASSERT_TRUE(**x == **y) << "seed 3, crop " << n;
  }
}

}  // namespace
}  // namespace patchbay::workers
