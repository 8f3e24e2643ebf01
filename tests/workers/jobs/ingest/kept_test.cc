// Stores of a slide's own tiles: bytes, holes and pixels are the slide's.
#include "runtime/core/strings.h"
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
