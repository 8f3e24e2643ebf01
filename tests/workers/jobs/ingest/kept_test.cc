// Stores of a slide's own tiles: bytes, holes and pixels are the slide's.
#include <cstring>

#include "runtime/core/strings.h"
#include "runtime/format/tiles/jpeg_decoder.h"
#include "runtime/format/tiles/self_contained_jpeg.h"
#include "runtime/format/zarr/verify.h"
#include "tests/workers/jobs/ingest/small_ingest.h"
#include "tests/workers/sources/crafted_tiff.h"
#include "workers/sources/image_source.h"

namespace patchbay::workers {
namespace {

constexpr std::uint32_t kSide = 100, kTile = 32;
constexpr std::size_t kHole = 5;

class IngestKept : public SmallIngest {
 protected:
  IngestKept() { settings_["codec"] = "keep"; }

  /// JPEG tiles that share their tables; tile kHole has no bytes.
  void WriteSlide(const std::string& name) const {
    JpegEncoder encoder(80);
    CraftedImage image;
    image.width = image.height = kSide;
    image.tile = kTile;
    image.compression = 7;
    image.tables = *encoder.Tables();
    for (std::size_t n = 0; n < PieceCount(image); ++n) {
      std::vector<std::uint8_t> rgb;
      for (std::size_t i = 0; i < std::size_t{3} * kTile * kTile; ++i) {
        rgb.push_back(static_cast<std::uint8_t>(i / 9 + 17 * n));
      }
      std::vector<std::byte> tile;
      ASSERT_TRUE(encoder.Encode({rgb.data(), kTile, kTile}, tile).ok());
      image.pieces.emplace_back(reinterpret_cast<const char*>(tile.data()),
                                n == kHole ? 0 : tile.size());
    }
    ASSERT_TRUE(WriteTiff(Path(name), {image}).ok());
  }

  std::string Ingested(const std::string& slide) {
    JobRunner job(Manifest({slide}), 1);
    job.Submit("ingest.plan", settings_);
    job.Run();
    for (const Status& failure : job.Failures()) ADD_FAILURE() << Describe(failure);
    return StrCat(out_, "/",
                  job.ResultOf("ingest.summary")["stores"][0]["name"].get<std::string>());
  }

  struct Read {
    std::vector<std::string> tiles;  ///< by place; empty where absent
    std::vector<std::byte> pixels;
  };

  /// All of level 0; `behind` bytes follow each tile.
  static Read ReadAll(const std::string& path, std::size_t behind) {
    const auto image = OpenImage(Folders::OfThisUser(), path);
    EXPECT_TRUE(image.ok()) << image.status();
    const Extent size = (*image)->layout().levels[0].size;
    Read read;
    read.pixels.resize(static_cast<std::size_t>(size.Pixels() * 3));
    EncodedPatch encoded;
    EXPECT_TRUE((*image)->Fetch(0, Box2D(0, 0, size.y, size.x), encoded).ok());
    const TensorView view =
        ContiguousView<3>(read.pixels.data(), DType::kUint8, {size.y, size.x, 3});
    EXPECT_TRUE((*image)->Decode(encoded, view, 255, *(*image)->MakeScratch()).ok());
    std::sort(encoded.pieces.begin(), encoded.pieces.end(), [](const auto& a, const auto& b) {
      return std::pair(a.chunk.y, a.chunk.x) < std::pair(b.chunk.y, b.chunk.x);
    });
    for (const EncodedPiece& piece : encoded.pieces) {
      const auto* bytes = reinterpret_cast<const char*>(encoded.bytes.data() + piece.begin);
      read.tiles.emplace_back(bytes, piece.absent ? 0 : piece.size_bytes - behind);
    }
    return read;
  }
};

TEST_F(IngestKept, TilesHolesAndPixelsAreTheSlides) {
  WriteSlide("a.tif");
  const Read slide = ReadAll(Path("a.tif"), 0);
  for (const bool no_statistics : {false, true}) {
    out_ = Path(no_statistics ? "fast" : "out");
    if (no_statistics) settings_["no_statistics"] = true;
    const std::string store = Ingested("a.tif");
    const Read kept = ReadAll(store, 4);
    EXPECT_EQ(kept.tiles, slide.tiles);
    EXPECT_TRUE(kept.tiles[kHole].empty());
    EXPECT_FALSE(kept.tiles[kHole + 1].empty());
    EXPECT_EQ(kept.pixels, slide.pixels);
    const auto report = zarr::VerifyStore(Folders::OfThisUser(), store);
    ASSERT_TRUE(report.ok()) << report.status();
    EXPECT_TRUE(report->Clean()) << testing::PrintToString(report->bad);
  }
}

TEST_F(IngestKept, SelfContainedTilesDecodeAloneToTheSlidesPixels) {
  WriteSlide("a.tif");
  const Read plain = ReadAll(Ingested("a.tif"), 4);
  settings_["self_contained"] = true;
  for (const bool no_statistics : {false, true}) {
    out_ = Path(no_statistics ? "fast" : "whole");
    if (no_statistics) settings_["no_statistics"] = true;
    const std::string store = Ingested("a.tif");
    const Read whole = ReadAll(store, 4);
    EXPECT_EQ(whole.pixels, plain.pixels);
    EXPECT_TRUE(whole.tiles[kHole].empty());
    EXPECT_NE(whole.tiles[0], plain.tiles[0]);
    std::vector<std::uint8_t> tile(std::size_t{3} * kTile * kTile);
    const tiles::JpegPiece alone{"", AsBytes(whole.tiles[0]), kTile, kTile, kTile, 3, false};
    ASSERT_TRUE(tiles::JpegDecoder()
                    .Decode(alone, {0, 0, kTile, kTile}, tile.data(), std::size_t{3} * kTile)
                    .ok());
    for (std::size_t y = 0; y < kTile; ++y) {
      EXPECT_EQ(
          std::memcmp(tile.data() + y * 3 * kTile, plain.pixels.data() + y * 3 * kSide, 3 * kTile),
          0);
    }
    const auto report = zarr::VerifyStore(Folders::OfThisUser(), store);
    ASSERT_TRUE(report.ok()) << report.status();
    EXPECT_TRUE(report->Clean()) << testing::PrintToString(report->bad);
  }
}

TEST(SelfContainedJpeg, LeavesOutMarkersThatContradictTheSlideAndKeepsTheRest) {
  const std::string start("\xFF\xD8", 2), jfif("\xFF\xE0\0\x07JFIF\0", 9),
      adobe(
          "\xFF\xEE\0\x0E"
          "Adobe\0\x64\0\0\0\0\x01",
          16),
      comment("\xFF\xFE\0\x03x", 5), scan("\xFF\xDA rest", 7), table("\xFF\xDB\0\x03q", 5),
      restart("\xFF\xDD\0\x04\0\x01", 6), end("\xFF\xD9", 2);
  const auto made = tiles::SelfContainedJpeg::Make(
      {tiles::TileCodec::kJpeg, false, start + restart + table + end}, 3);
  ASSERT_TRUE(made.ok()) << made.status();
  std::vector<std::byte> out;
  ASSERT_TRUE(made->Append(AsBytes(start + jfif + adobe + comment + "\xFF" + scan), out).ok());
  std::string rgb = adobe;
  rgb.back() = 0;
  EXPECT_EQ(AsText(out), start + rgb + table + comment + scan);
}

TEST(SelfContainedJpeg, RefusesTablesAndTilesThatAreNone) {
  const std::string start("\xFF\xD8", 2), end("\xFF\xD9", 2), cut("\xFF\xDB\0\x09q", 5),
      scan("\xFF\xDA rest", 7), short_length("\xFF\xDB\0\x01", 4);
  const auto make = [](const std::string& tables) {
    return tiles::SelfContainedJpeg::Make({tiles::TileCodec::kJpeg, false, tables}, 3).status();
  };
  for (const std::string& bad : {std::string("x"), start, start + "\xFF", start + cut, start + scan,
                                 start + short_length, start + "abcd"}) {
    EXPECT_TRUE(absl::IsDataLoss(make(bad))) << testing::PrintToString(bad);
  }
  const auto whole = tiles::SelfContainedJpeg::Make({tiles::TileCodec::kJpeg, false, ""}, 1);
  ASSERT_TRUE(whole.ok());
  std::vector<std::byte> out;
  for (const std::string& bad : {std::string(), std::string("x"), start, start + end, start + cut,
                                 start + short_length, start + "abcd"}) {
    EXPECT_TRUE(absl::IsDataLoss(whole->Append(AsBytes(bad), out))) << testing::PrintToString(bad);
  }
}

TEST_F(IngestKept, ShardsAreOfWholeTiles) {
  WriteSlide("a.tif");
  settings_["shard"] = 70;  // two tiles a side
  const std::string store = Ingested("a.tif");
  EXPECT_TRUE(std::filesystem::exists(store + "/0/c/0/1/1"));
  EXPECT_EQ(ReadAll(store, 4).tiles, ReadAll(Path("a.tif"), 0).tiles);
  const auto report = zarr::VerifyStore(Folders::OfThisUser(), store);
  EXPECT_TRUE(report.ok() && report->Clean()) << report.status();
}

}  // namespace
}  // namespace patchbay::workers
