// Single bits of good pieces flipped: damage that a format can show is refused, and libtiff and
// libjpeg refuse no piece that passes here.
#include <cstring>

#include <gtest/gtest.h>
#include <jpeglib.h>
#include <tiffio.h>
#include <zlib.h>
#include <zstd.h>

#include "runtime/format/tiles/jpeg_decoder.h"
#include "runtime/format/zarr/file_byte_store.h"
#include "tests/workers/sources/crafted_tiff.h"
#include "workers/sources/flat_codecs.h"

namespace patchbay::workers {
namespace {

constexpr int kSide = 64, kTile = 32, kBitFlips = 300;
constexpr std::size_t kTileBytes = std::size_t{kTile} * kTile * 3;

/// Part gradient, part noise and part background, so that every kind of code is there.
std::vector<std::uint8_t> TilePixels(std::uint64_t tile) {
  std::vector<std::uint8_t> rgb(kTileBytes, 255);
  DrawKey key;
  key.seed = 7;
  key.ordinal = tile;
  for (std::size_t i = 0; i < rgb.size() * 3 / 4; ++i) {
    const std::uint32_t noise = Draw(key, static_cast<std::uint32_t>(i / 4)).word[i % 4] % 13;
    rgb[i] = static_cast<std::uint8_t>(i / 31 + noise * (i % 256 > 128 ? 1 : 0));
  }
  return rgb;
}

/// The n-th bit of a seeded sequence inside [begin, begin + bytes) turned over.
void FlipBit(std::string& bytes, std::size_t begin, std::size_t size, std::uint64_t n) {
  DrawKey key;
  key.seed = 15;
  key.ordinal = n;
  const PhiloxBlock draw = Draw(key, 0);
  const std::size_t at = begin + draw.word[0] % size;
  bytes[at] = static_cast<char>(bytes[at] ^ (1 << draw.word[1] % 8));
}

void SilenceLibtiff() {
  TIFFSetWarningHandler(nullptr);
  TIFFSetErrorHandler(nullptr);
}

void WriteByLibtiff(const std::string& path, std::uint16_t compression) {
  TIFF* tiff = TIFFOpen(path.c_str(), "w");
  ASSERT_NE(tiff, nullptr);
  TIFFSetField(tiff, TIFFTAG_IMAGEWIDTH, kSide);
  TIFFSetField(tiff, TIFFTAG_IMAGELENGTH, kSide);
  TIFFSetField(tiff, TIFFTAG_TILEWIDTH, kTile);
  TIFFSetField(tiff, TIFFTAG_TILELENGTH, kTile);
  TIFFSetField(tiff, TIFFTAG_BITSPERSAMPLE, 8);
  TIFFSetField(tiff, TIFFTAG_SAMPLESPERPIXEL, 3);
  TIFFSetField(tiff, TIFFTAG_PHOTOMETRIC, PHOTOMETRIC_RGB);
  TIFFSetField(tiff, TIFFTAG_PLANARCONFIG, PLANARCONFIG_CONTIG);
  TIFFSetField(tiff, TIFFTAG_COMPRESSION, compression);
  for (std::uint32_t tile = 0; tile < 4; ++tile) {
    auto rgb = TilePixels(tile);
    ASSERT_GT(TIFFWriteEncodedTile(tiff, tile, rgb.data(), kTileBytes), 0);
  }
  TIFFClose(tiff);
}

bool LibtiffReads(const std::string& path) {
  TIFF* tiff = TIFFOpen(path.c_str(), "r");
  if (tiff == nullptr) return false;
  std::vector<std::uint8_t> tile(kTileBytes);
  bool good = true;
  for (std::uint32_t i = 0; i < 4; ++i) {
    good &= TIFFReadEncodedTile(tiff, i, tile.data(), kTileBytes) == tmsize_t{kTileBytes};
  }
  TIFFClose(tiff);
  return good;
}

StatusOr<std::vector<std::uint8_t>> ReadByUs(const std::string& path) {
  PB_ASSIGN_OR_RETURN(const auto image, OpenImage(Folders::OfThisUser(), path));
  PatchReader reader(*image);
  PB_ASSIGN_OR_RETURN(const auto* pixels, reader.Read(0, Box2D(0, 0, kSide, kSide), 255));
  return *pixels;
}

/// Where the bytes of the first tile lie.
std::pair<std::size_t, std::size_t> FirstPiece(const std::string& path) {
  const auto index = TiffIndex::Read(*zarr::OpenStoredFile(Folders::OfThisUser(), path));
  const auto pieces = index->ReadPieces(index->directories()[0]);
  return {pieces->offset[0], pieces->size_bytes[0]};
}

struct FlipCount {
  int refused = 0, same = 0, different = 0;
};

/// Each flip on its own, with libtiff's verdict beside ours.
FlipCount FlipTiles(std::uint16_t compression) {
  SilenceLibtiff();
  FlipCount count;
  const TemporaryFolder folder;
  const std::string path = folder.File("a.tif");
  WriteByLibtiff(path, compression);
  const auto good = ReadByUs(path);
  EXPECT_TRUE(good.ok()) << Describe(good.status());
  if (!good.ok() || !LibtiffReads(path)) return count;
  const std::string whole = *ReadFile(Folders::OfThisUser(), path, 1 << 20);
  const auto [begin, size] = FirstPiece(path);
  for (int n = 0; n < kBitFlips; ++n) {
    std::string bytes = whole;
    FlipBit(bytes, begin, size, static_cast<std::uint64_t>(n));
    EXPECT_TRUE(ReplaceFile(Folders::OfThisUser(), path, AsBytes(bytes), 0644).ok());
    const auto pixels = ReadByUs(path);
    if (!pixels.ok()) {
      EXPECT_EQ(pixels.status().code(), absl::StatusCode::kDataLoss) << Describe(pixels.status());
      ++count.refused;
      continue;
    }
    EXPECT_TRUE(LibtiffReads(path)) << "flip " << n << ": libtiff refuses it";
    ++(*pixels == *good ? count.same : count.different);
  }
  return count;
}

TEST(BitFlips, DeflateTilesNeverGiveOtherPixels) {
  const FlipCount count = FlipTiles(COMPRESSION_ADOBE_DEFLATE);
  EXPECT_EQ(count.different, 0);
  EXPECT_GT(count.refused, kBitFlips * 9 / 10);
}

TEST(BitFlips, LibtiffRefusesNothingThatPassesHere) {
  for (const std::uint16_t compression :
       {COMPRESSION_LZW, COMPRESSION_PACKBITS, COMPRESSION_ZSTD}) {
    SCOPED_TRACE(StrCat("compression ", compression));
    EXPECT_GT(FlipTiles(compression).refused, 0);
  }
}

TEST(BitFlips, ZstdTilesWithAChecksumNeverGiveOtherPixels) {
  const auto rgb = TilePixels(1);
  std::string good(ZSTD_compressBound(rgb.size()), '\0');
  ZSTD_CCtx* context = ZSTD_createCCtx();
  ZSTD_CCtx_setParameter(context, ZSTD_c_checksumFlag, 1);
  good.resize(ZSTD_compress2(context, good.data(), good.size(), rgb.data(), rgb.size()));
  ZSTD_freeCCtx(context);
  std::vector<std::uint8_t> out(kTileBytes);
  for (int n = 0; n < kBitFlips; ++n) {
    std::string bytes = good;
    FlipBit(bytes, 0, bytes.size(), static_cast<std::uint64_t>(n));
    if (DecodeFlat(TiffCompression::kZstd, AsBytes(bytes), out).ok()) {
      EXPECT_EQ(out, rgb) << n;
    }
  }
}

std::string DeflatedSamples(const std::vector<std::uint8_t>& samples) {
  uLongf size = compressBound(samples.size());
  std::string out(size, '\0');
  EXPECT_EQ(
      compress2(reinterpret_cast<Bytef*>(out.data()), &size, samples.data(), samples.size(), 6),
      Z_OK);
  out.resize(size);
  return out;
}

std::string LzwOfOneTile() {
  const TemporaryFolder folder;
  WriteByLibtiff(folder.File("a.tif"), COMPRESSION_LZW);
  const auto [begin, size] = FirstPiece(folder.File("a.tif"));
  return ReadFile(Folders::OfThisUser(), folder.File("a.tif"), 1 << 20)->substr(begin, size);
}

/// Every codec with an end mark: whole, padded, and refused pieces.
void ExpectAnEnd(TiffCompression codec, const std::string& good) {
  SCOPED_TRACE(StrCat("compression ", static_cast<std::uint32_t>(codec)));
  std::vector<std::uint8_t> out(kTileBytes);
  EXPECT_TRUE(DecodeFlat(codec, AsBytes(good), out).ok());
  EXPECT_TRUE(DecodeFlat(codec, AsBytes(good + std::string(7, '\0')), out).ok());
  EXPECT_TRUE(absl::IsDataLoss(DecodeFlat(codec, AsBytes(good + "surplus"), out)));
  EXPECT_TRUE(absl::IsDataLoss(DecodeFlat(codec, AsBytes(good.substr(0, good.size() / 2)), out)));
  std::vector<std::uint8_t> more(kTileBytes + 1), less(kTileBytes - 1);
  EXPECT_TRUE(absl::IsDataLoss(DecodeFlat(codec, AsBytes(good), more)));
  EXPECT_TRUE(absl::IsDataLoss(DecodeFlat(codec, AsBytes(good), less)));
  // A last strip: its own rows, or those of a whole strip.
  std::vector<std::uint8_t> strip(kTileBytes * 2);
  EXPECT_TRUE(DecodeFlat(codec, AsBytes(good), strip, kTileBytes).ok());
  EXPECT_TRUE(DecodeFlat(codec, AsBytes(good), out, kTileBytes / 2).ok());
  EXPECT_TRUE(absl::IsDataLoss(DecodeFlat(codec, AsBytes(good), strip, kTileBytes + 1)));
}

TEST(FlatCodecs, PiecesEndWhereTheirSamplesEnd) {
  const auto rgb = TilePixels(0);
  ExpectAnEnd(TiffCompression::kDeflate, DeflatedSamples(rgb));
  ExpectAnEnd(TiffCompression::kLzw, LzwOfOneTile());
  std::string frame(ZSTD_compressBound(rgb.size()), '\0');
  frame.resize(ZSTD_compress(frame.data(), frame.size(), rgb.data(), rgb.size(), 3));
  ExpectAnEnd(TiffCompression::kZstd, frame);
  std::string runs;
  for (std::size_t i = 0; i < rgb.size(); i += 128) {
    runs +=
        static_cast<char>(127) + std::string(rgb.begin() + static_cast<std::ptrdiff_t>(i),
                                             rgb.begin() + static_cast<std::ptrdiff_t>(i + 128));
  }
  ExpectAnEnd(TiffCompression::kPackBits, runs);
}

TEST(FlatCodecs, DeflateWithoutItsChecksumIsRefused) {
  const std::string good = DeflatedSamples(TilePixels(0));
  std::vector<std::uint8_t> out(kTileBytes);
  for (std::size_t cut = 1; cut <= 5; ++cut) {
    const std::string bytes = good.substr(0, good.size() - cut);
    EXPECT_TRUE(absl::IsDataLoss(DecodeFlat(TiffCompression::kDeflate, AsBytes(bytes), out)));
  }
}

void RaiseFlag(j_common_ptr cinfo, int level) { cinfo->err->num_warnings += level < 0 ? 1 : 0; }
void StayQuiet(j_common_ptr) {}
[[noreturn]] void Throw(j_common_ptr) { throw 1; }

/// Whether plain libjpeg decodes the whole image without calling it corrupt.
bool LibjpegIsContent(const std::string& tables, const std::string& bytes) {
  jpeg_decompress_struct cinfo;
  jpeg_error_mgr error;
  cinfo.err = jpeg_std_error(&error);
  error.error_exit = Throw;
  error.emit_message = RaiseFlag;
  error.output_message = StayQuiet;
  jpeg_create_decompress(&cinfo);
  bool content = false;
  try {
    for (const std::string* part : {&tables, &bytes}) {
      jpeg_mem_src(&cinfo, reinterpret_cast<const unsigned char*>(part->data()), part->size());
      jpeg_read_header(&cinfo, part == &bytes ? TRUE : FALSE);
    }
    jpeg_start_decompress(&cinfo);
    std::vector<std::uint8_t> row(cinfo.output_width * 3u);
    JSAMPROW rows = row.data();
    while (cinfo.output_scanline < cinfo.output_height) jpeg_read_scanlines(&cinfo, &rows, 1);
    jpeg_finish_decompress(&cinfo);
    content = error.num_warnings == 0;
  } catch (int) {
  }
  jpeg_destroy_decompress(&cinfo);
  return content;
}

TEST(BitFlips, LibjpegCallsNothingCorruptThatPassesHereWhateverTheWindow) {
  JpegEncoder encoder(80);
  std::vector<std::byte> encoded;
  const auto rgb = TilePixels(0);
  ASSERT_TRUE(encoder.Encode({rgb.data(), kTile, kTile}, encoded).ok());
  const std::string tables = *encoder.Tables(), whole(AsText(encoded));
  ASSERT_TRUE(LibjpegIsContent(tables, whole));
  tiles::JpegDecoder decoder;
  std::vector<std::uint8_t> out(kTileBytes);
  int refused = 0;
  for (int n = 0; n < kBitFlips; ++n) {
    std::string bytes = whole;
    FlipBit(bytes, 0, bytes.size(), static_cast<std::uint64_t>(n));
    if (LibjpegIsContent(tables, bytes)) continue;
    ++refused;
    const tiles::JpegPiece piece{tables, AsBytes(bytes), kTile, kTile, kTile, 3, false};
    for (const tiles::PixelWindow& window :
         {tiles::PixelWindow{0, 0, kTile, kTile}, tiles::PixelWindow{0, 0, 4, 4},
          tiles::PixelWindow{0, 0, 9, kTile}, tiles::PixelWindow{3, 16, 8, 8}}) {
      EXPECT_TRUE(absl::IsDataLoss(decoder.Decode(piece, window, out.data(), kTile * 3)))
          << "flip " << n << " window " << window.y << ',' << window.x;
    }
  }
  EXPECT_GT(refused, kBitFlips / 3);
}

}  // namespace
}  // namespace patchbay::workers
