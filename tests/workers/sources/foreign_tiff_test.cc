// TIFFs that another library wrote.
#include <algorithm>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <iterator>

#include <gtest/gtest.h>

#include "tests/workers/sources/crafted_tiff.h"
#include "tests/workers/sources/python_oracle.h"
#include "workers/sources/openslide_source.h"

namespace patchbay::workers {
namespace {

/// Has the files that tifffile wrote; skips where Python or a package is missing.
class ForeignTiff : public testing::Test {
 protected:
  void SetUp() override {
    if (!HasPackages("numpy, tifffile, imagecodecs")) {
      GTEST_SKIP() << "no Python with tifffile and imagecodecs at PATCHBAY_PYTHON";
    }
    ASSERT_TRUE(RunScript("tifffile_writer.py", folder.path()));
  }

  const TemporaryFolder folder;
};

TEST_F(ForeignTiff, EveryLevelHoldsThePixelsThatWereWritten) {
  int files = 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder.path())) {
    if (entry.path().extension() != ".tif") continue;
    ++files;
    const std::string name = entry.path().stem().string();
    SCOPED_TRACE(name);
    const auto image = OpenImage(Folders::OfThisUser(), entry.path().string());
    ASSERT_TRUE(image.ok()) << Describe(image.status());
    const auto& levels = (*image)->layout().levels;
    PatchReader reader(**image);
    for (std::size_t i = 0; i < levels.size(); ++i) {
      std::ifstream raw(folder.File(StrCat(name, ".", i, ".raw")), std::ios::binary);
      ASSERT_TRUE(raw.good()) << "level " << i << " was never written";
      const std::vector<std::uint8_t> expected{std::istreambuf_iterator<char>(raw), {}};
      const auto pixels =
          reader.Read(static_cast<int>(i), Box2D(0, 0, levels[i].size.y, levels[i].size.x), 1);
      ASSERT_TRUE(pixels.ok()) << Describe(pixels.status());
      EXPECT_TRUE(**pixels == expected) << "level " << i;
    }
    EXPECT_FALSE(std::filesystem::exists(folder.File(StrCat(name, ".", levels.size(), ".raw"))))
        << "a level was not found";
  }
  EXPECT_EQ(files, 14);
}

TEST_F(ForeignTiff, SubsampledAperioCropsEqualOpenSlidePixelForPixel) {
  for (const char* name : {"aperio_422.svs", "aperio_420.svs", "aperio_444.svs"}) {
    SCOPED_TRACE(name);
    const auto image = OpenImage(Folders::OfThisUser(), folder.File(name));
    ASSERT_TRUE(image.ok()) << Describe(image.status());
    EXPECT_EQ((*image)->layout().kind, "aperio");
    EXPECT_EQ((*image)->layout().levels.size(), 2u);
    OpenSlidePeer peer(folder.File(name));
    ASSERT_TRUE(peer.ok());
    PatchReader reader(**image);
    for (std::uint64_t n = 0; n < 150; ++n) {
      const Box box = RandomBox(31, n, (*image)->layout().levels[0], 300);
      const auto pixels = reader.Read(0, box, 255);
      ASSERT_TRUE(pixels.ok()) << Describe(pixels.status());
      ASSERT_EQ(CountDifferences(**pixels, peer.ReadArgb(0, box), 255), 0u)
          << "seed 31 crop " << n << " " << box.ToString();
    }
  }
}

TEST_F(ForeignTiff, JpegCropsOfAnyPlaceEqualThoseOfTheWhole) {
  for (const char* name : {"grey_jpeg.jpegtif", "rgb_jpeg.jpegtif"}) {
    const auto image = OpenImage(Folders::OfThisUser(), folder.File(name));
    ASSERT_TRUE(image.ok()) << Describe(image.status());
    const LevelLayout& level = (*image)->layout().levels[0];
    const int channels = (*image)->layout().channels;
    PatchReader whole_reader(**image), reader(**image);
    const auto whole = whole_reader.Read(0, Box2D(0, 0, level.size.y, level.size.x), 0);
    ASSERT_TRUE(whole.ok()) << Describe(whole.status());
    for (std::uint64_t n = 0; n < 200; ++n) {
      Box box = RandomBox(41, n, level, 150);
      box = Intersect(box, Box2D(0, 0, level.size.y, level.size.x));
      if (box.Empty()) continue;
      const auto pixels = reader.Read(0, box, 0);
      ASSERT_TRUE(pixels.ok()) << Describe(pixels.status());
      const std::int64_t row_bytes = box.width * channels;
      for (std::int64_t y = 0; y < box.height; ++y) {
        const auto expected = (*whole)->begin() + ((box.y + y) * level.size.x + box.x) * channels;
        ASSERT_TRUE(std::equal(expected, expected + row_bytes, (*pixels)->begin() + y * row_bytes))
            << name << " seed 41 crop " << n << " row " << y;
      }
    }
  }
}

TEST_F(ForeignTiff, OpenSlideTakesThoseOfVendorsItKnows) {
  const auto image = OpenImage(Folders::OfThisUser(), folder.File("trestle.scan"));
  ASSERT_TRUE(image.ok()) << Describe(image.status());
  EXPECT_EQ((*image)->layout().kind, "openslide:trestle");
  EXPECT_EQ((*image)->layout().levels.size(), 2u);
  OpenSlidePeer peer(folder.File("trestle.scan"));
  PatchReader reader(**image);
  const Box box = Box2D(-20, 30, 200, 300);
  const auto pixels = reader.Read(0, box, 17);
  ASSERT_TRUE(pixels.ok()) << Describe(pixels.status());
  EXPECT_EQ(CountDifferences(**pixels, peer.ReadArgb(0, box), 17), 0u);
}

/// Two copies of a slide that OpenSlide reads: the file at its name is replaced after it was
/// opened.
TEST(OpenSlideSource, ReadsNothingMoreOnceOneOfItsFilesChanged) {
  JpegEncoder encoder(80);
  const std::vector<std::uint8_t> gray(32 * 32 * 3, 90);
  std::vector<std::byte> jpeg;
  ASSERT_TRUE(encoder.Encode({gray.data(), 32, 32}, jpeg).ok());
  CraftedImage crafted;
  crafted.width = crafted.height = 64;
  crafted.tile = 32;
  crafted.compression = 7;
  crafted.tables = *encoder.Tables();
  crafted.pieces.assign(4, std::string(AsText(jpeg)));
  TemporaryFolder folder;
  const std::string path = folder.File("a.tif");
  ASSERT_TRUE(WriteTiff(path, {crafted}).ok());
  EXPECT_EQ(SlideFiles(Folders::OfThisUser(), path), std::vector<std::string>{path});
  const auto image = OpenOpenSlideImage(Folders::OfThisUser(), path);
  ASSERT_TRUE(image.ok()) << Describe(image.status());
  PatchReader reader(**image);
  const Box box = Box2D(0, 0, 32, 32);
  ASSERT_TRUE(reader.Read(0, box, 255).ok());
  std::filesystem::last_write_time(
      path, std::filesystem::last_write_time(path) + std::chrono::seconds(5));
  for (int twice = 0; twice < 2; ++twice) {
    EXPECT_TRUE(absl::IsAborted(reader.Read(0, box, 255).status()))
        << "OpenSlide has kept the tile";
  }
  const auto anew = OpenOpenSlideImage(Folders::OfThisUser(), path);
  ASSERT_TRUE(anew.ok()) << Describe(anew.status());
  EXPECT_TRUE(PatchReader(**anew).Read(0, box, 255).ok());
  std::filesystem::remove(path);
  const Status gone = PatchReader(**anew).Read(0, box, 255).status();
  EXPECT_TRUE(absl::IsAborted(gone)) << gone;
  EXPECT_NE(gone.message().find("it is gone"), std::string::npos) << gone;
}

TEST(SlideFiles, OfAMiraxSlideAreAllThatLieInItsFolder) {
  TemporaryFolder folder;
  std::filesystem::create_directories(folder.File("s/below"));
  for (const char* name : {"s.mrxs", "s/Slidedat.ini", "s/Data0000.dat", "other.mrxs"}) {
    std::ofstream(folder.File(name)) << name;
  }
  EXPECT_EQ(SlideFiles(Folders::OfThisUser(), folder.File("s.mrxs")),
            (std::vector<std::string>{folder.File("s.mrxs"), folder.File("s/Data0000.dat"),
                                      folder.File("s/Slidedat.ini")}));
  EXPECT_EQ(SlideFiles(Folders::OfThisUser(), folder.File("other.mrxs")).size(), 1u);
}

TEST(OpenSlideSource, GoesOnAfterADamagedTile) {
  JpegEncoder encoder(80);
  const std::vector<std::uint8_t> gray(32 * 32 * 3, 90);
  std::vector<std::byte> jpeg;
  ASSERT_TRUE(encoder.Encode({gray.data(), 32, 32}, jpeg).ok());
  CraftedImage crafted;
  crafted.width = crafted.height = 128;
  crafted.tile = 32;
  crafted.compression = 7;
  crafted.tables = *encoder.Tables();
  crafted.pieces.assign(16, std::string(AsText(jpeg)));
  crafted.pieces[6] = "no jpeg at all";
  TemporaryFolder folder;
  ASSERT_TRUE(WriteTiff(folder.File("a.tif"), {crafted}).ok());
  const auto image = OpenOpenSlideImage(Folders::OfThisUser(), folder.File("a.tif"));
  ASSERT_TRUE(image.ok()) << Describe(image.status());
  PatchReader reader(**image);
  for (int round = 0; round < 2; ++round) {
    EXPECT_TRUE(reader.Read(0, Box2D(0, 0, 32, 128), 255).ok());
    const auto pixels = reader.Read(0, Box2D(32, 64, 32, 32), 255);
    ASSERT_FALSE(pixels.ok());
    EXPECT_EQ(pixels.status().code(), absl::StatusCode::kDataLoss);
  }
}

}  // namespace
}  // namespace patchbay::workers
