// Seeded damage to good slides.
#include <gtest/gtest.h>

#include "runtime/format/tiles/jpeg2000_decoder.h"
#include "runtime/format/tiles/jpeg_decoder.h"
#include "runtime/format/zarr/file_byte_store.h"
#include "tests/workers/sources/crafted_tiff.h"
#include "tests/workers/sources/fuzz/damage.h"
#include "workers/sources/flat_codecs.h"
#include "workers/sources/tiff_source.h"

namespace patchbay::workers {
namespace {

std::vector<std::string> GoodFiles(const TemporaryFolder& folder) {
  std::vector<std::string> files;
  JpegEncoder encoder(80);
  std::vector<std::uint8_t> pixels(32 * 32 * 3);
  for (std::size_t i = 0; i < pixels.size(); ++i) pixels[i] = static_cast<std::uint8_t>(i * 37 / 5);
  std::vector<std::byte> jpeg;
  EXPECT_TRUE(encoder.Encode({pixels.data(), 32, 32}, jpeg).ok());
  CraftedImage aperio;
  aperio.width = aperio.height = 128;
  aperio.tile = 32;
  aperio.compression = 7;
  aperio.description = "Aperio Image|MPP = 0.5|AppMag = 20";
  aperio.tables = *encoder.Tables();
  aperio.pieces.assign(16, std::string(AsText(jpeg)));
  CraftedImage reduced = aperio;
  reduced.width = reduced.height = 32;
  reduced.pieces.resize(1);
  CraftedImage flat;
  flat.predictor = 2;
  FillFlat(flat);
  for (const bool is_big : {false, true}) {
    for (const auto& images :
         {std::vector<CraftedImage>{aperio, reduced}, std::vector<CraftedImage>{flat}}) {
      const std::string path = folder.File("good.tif");
      EXPECT_TRUE(WriteTiff(path, images, is_big).ok());
      files.push_back(*ReadFile(Folders::OfThisUser(), path, 1 << 20));
    }
  }
  for (const char* name : {"tiff_tiled_ycbcr_jpeg_2x2_sampling.tif", "tiff_tiled_planar_lzw.tiff",
                           "boxes.tiff", "yb10kx5k.zstd.tiff", "BigTIFFMotorola.tif"}) {
    auto text = ReadFile(Folders::OfThisUser(),
                         StrCat(TestDataFolder(), "/wsi/tiff-variants/", name), 1 << 20);
    if (text.ok()) files.push_back(*std::move(text));
  }
  return files;
}

void ReadSome(const std::string& path) {
  const auto image = OpenTiffImage(Folders::OfThisUser(), path);
  if (!image.ok()) {
    ASSERT_NE(image.status().code(), absl::StatusCode::kInternal) << Describe(image.status());
    return;
  }
  PatchReader reader(**image);
  const auto& levels = (*image)->layout().levels;
  for (std::size_t i = 0; i < std::min<std::size_t>(levels.size(), 4); ++i) {
    for (const Box& box :
         {Box2D(-5, -5, 60, 60), Box2D(levels[i].size.y - 30, levels[i].size.x - 30, 50, 50)}) {
      const auto pixels = reader.Read(static_cast<int>(i), box, 255);
      if (!pixels.ok()) {
        ASSERT_NE(pixels.status().code(), absl::StatusCode::kInternal) << Describe(pixels.status());
      }
    }
  }
}

TEST(SlideFuzz, DamagedFilesNeverBreakTheReader) {
  const std::uint64_t seed = FromEnvironment("PATCHBAY_FUZZ_SEED", 20240607);
  const std::uint64_t runs = FromEnvironment("PATCHBAY_FUZZ_RUNS", 4000);
  TemporaryFolder folder;
  const std::vector<std::string> good = GoodFiles(folder);
  const std::string path = folder.File("damaged.tif");
  for (std::uint64_t run = 0; run < runs; ++run) {
    SCOPED_TRACE(StrCat("seed ", seed, " run ", run));
    Dice dice(seed, run);
    std::string bytes = good[dice.Below(good.size())];
    // Directories lie at the start or the end of these files; pixels between them.
    const std::size_t part = std::min<std::size_t>(bytes.size(), 1500);
    switch (dice.Below(4)) {
      case 0:
        Damage(bytes, dice, 0, part);
        break;
      case 1:
        Damage(bytes, dice, 0, bytes.size());
        break;
      default:
        Damage(bytes, dice, bytes.size() - part, bytes.size());
    }
    const auto fd = OpenFile(Folders::OfThisUser(), path, O_WRONLY | O_CREAT | O_TRUNC);
    ASSERT_TRUE(fd.ok());
    ASSERT_TRUE(WriteAt(fd->get(), 0, AsBytes(bytes), "damaged").ok());
    ReadSome(path);
    if (testing::Test::HasFatalFailure()) return;
  }
}

TEST(SlideFuzz, NoiseNeverBreaksTheFlatCodecs) {
  const std::uint64_t seed = FromEnvironment("PATCHBAY_FUZZ_SEED", 20240607);
  std::vector<std::uint8_t> out(5000);
  for (std::uint64_t run = 0; run < 3000; ++run) {
    Dice dice(seed + 1, run);
    std::string bytes(dice.Below(3000), '\0');
    for (char& c : bytes) c = static_cast<char>(dice.Next() >> dice.Below(3) * 8);
    for (auto codec : {TiffCompression::kLzw, TiffCompression::kDeflate, TiffCompression::kZstd,
                       TiffCompression::kPackBits, TiffCompression::kNone}) {
      const Status status = DecodeFlat(codec, AsBytes(bytes), out);
      EXPECT_TRUE(status.ok() || status.code() == absl::StatusCode::kDataLoss);
    }
  }
}

TEST(SlideFuzz, DamagedCodestreamsNeverBreakJpeg2000) {
  const std::string slide = TestDataFolder() + "/wsi/luna-1065626-ihc-j2k33003.svs";
  if (!std::filesystem::exists(slide))
    GTEST_SKIP() << "the third-party slides are not at PATCHBAY_TEST_DATA";
  const auto file = zarr::OpenStoredFile(Folders::OfThisUser(), slide);
  ASSERT_TRUE(file.ok());
  const auto index = TiffIndex::Read(*file);
  ASSERT_TRUE(index.ok());
  const auto pieces = index->ReadPieces(index->directories()[2]);
  ASSERT_TRUE(pieces.ok());
  const std::uint64_t seed = FromEnvironment("PATCHBAY_FUZZ_SEED", 20240607);
  const std::uint64_t runs = FromEnvironment("PATCHBAY_FUZZ_RUNS", 4000) / 20;
  std::vector<std::uint8_t> rgb(512 * 512 * 3);
  for (std::uint64_t run = 0; run < runs; ++run) {
    Dice dice(seed + 2, run);
    const std::size_t n = dice.Below(pieces->offset.size());
    std::string bytes(pieces->size_bytes[n], '\0');
    ASSERT_TRUE(
        (*file)->Read(pieces->offset[n], std::as_writable_bytes(std::span(bytes)), "tile").ok());
    Damage(bytes, dice, 0,
           dice.Below(2) == 0 ? std::min<std::size_t>(200, bytes.size()) : bytes.size());
    const Status status =
        tiles::DecodeJpeg2000({AsBytes(bytes), 512, 512, true}, {0, 0, 512, 512}, rgb.data());
    EXPECT_TRUE(status.ok() || status.code() == absl::StatusCode::kDataLoss) << Describe(status);
  }
}

}  // namespace
}  // namespace patchbay::workers
