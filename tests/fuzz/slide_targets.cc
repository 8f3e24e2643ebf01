// TIFF directories and the decoders of tiles.
#include <array>
#include <cstdlib>

#include <zlib.h>
#include <zstd.h>

#include "runtime/core/strings.h"
#include "runtime/format/tiles/jpeg2000_decoder.h"
#include "runtime/format/tiles/jpeg_decoder.h"
#include "runtime/os/file.h"
#include "tests/fuzz/fuzz_target.h"
#include "tests/runtime/format/zarr/bytes_in_memory.h"
#include "tests/workers/sources/crafted_tiff.h"
#include "workers/sources/flat_codecs.h"
#include "workers/sources/tiff_index.h"

namespace patchbay::fuzz {
namespace {

using namespace workers;

constexpr int kSide = 32;  ///< side of the tiles
constexpr std::array kFlat = {TiffCompression::kNone, TiffCompression::kLzw,
                              TiffCompression::kDeflate, TiffCompression::kPackBits,
                              TiffCompression::kZstd};

std::string Pixels() {
  std::string pixels(kSide * kSide * 3, '\0');
  for (std::size_t i = 0; i < pixels.size(); ++i) pixels[i] = static_cast<char>(i * 37 / 5);
  return pixels;
}

bool ReadTiff(std::span<const std::byte> bytes) {
  const auto file = std::make_shared<const zarr::BytesInMemory>(std::string(AsText(bytes)));
  const auto index = TiffIndex::Read(file);
  if (!index.ok()) return false;
  if (index->directories().size() > kMaxTiffDirectories) std::abort();
  for (const TiffDirectory& directory : index->directories()) {
    (void)index->ReadSubDirectories(directory);
    (void)index->ReadDescription(directory);
    (void)index->ReadJpegTables(directory);
    const auto pieces = index->ReadPieces(directory);
    if (pieces.ok() && pieces->offset.size() != pieces->size_bytes.size()) std::abort();
  }
  return true;
}

std::vector<std::string> TiffSeeds() {
  std::vector<std::string> seeds;
  const TemporaryFolder folder;
  for (const bool is_big : {false, true}) {
    CraftedImage image;
    image.description = "Aperio Image|MPP = 0.5|AppMag = 20";
    image.tables = "tables";
    FillFlat(image);
    CraftedImage reduced = image;
    reduced.subfile = 1;
    const std::string path = folder.File(is_big ? "big.tif" : "small.tif");
    if (!WriteTiff(path, {image, reduced}, is_big).ok()) std::abort();
    seeds.push_back(*ReadFile(Folders::OfThisUser(), path, 1 << 20));
  }
  return seeds;
}

bool ReadFlat(std::span<const std::byte> bytes) {
  const Variant variant(bytes, kFlat.size());
  std::vector<std::uint8_t> out(kSide * kSide * 3);
  return DecodeFlat(kFlat[variant.index], variant.bytes, out, out.size() / 2).ok();
}

/// Codes of nine bits, with a Clear before the table would grow.
std::string Lzw(std::string_view bytes) {
  std::string out;
  unsigned pending = 0, bits = 0;
  const auto put = [&](unsigned code) {
    pending = pending << 9 | code;
    for (bits += 9; bits >= 8; bits -= 8) {
      out.push_back(static_cast<char>(pending >> (bits - 8)));
    }
    pending &= (1u << bits) - 1;
  };
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    if (i % 200 == 0) put(256);
    put(static_cast<unsigned char>(bytes[i]));
  }
  put(257);
  out.push_back(static_cast<char>(pending << (8 - bits)));
  return out;
}

std::vector<std::string> FlatSeeds() {
  const std::string pixels = Pixels();
  std::string deflated(compressBound(pixels.size()), '\0'), packed;
  uLongf size = deflated.size();
  if (compress(reinterpret_cast<Bytef*>(deflated.data()), &size,
               reinterpret_cast<const Bytef*>(pixels.data()), pixels.size()) != Z_OK) {
    std::abort();
  }
  deflated.resize(size);
  for (std::size_t i = 0; i < pixels.size(); i += 96) {
    packed += static_cast<char>(95) + pixels.substr(i, 96);
  }
  std::string zstd(ZSTD_compressBound(pixels.size()), '\0');
  zstd.resize(ZSTD_compress(zstd.data(), zstd.size(), pixels.data(), pixels.size(), 3));
  return {Prefixed(0, pixels), Prefixed(1, Lzw(pixels)), Prefixed(2, deflated), Prefixed(3, packed),
          Prefixed(4, zstd)};
}

bool ReadJpeg(std::span<const std::byte> bytes) {
  const Variant variant(bytes, 4);
  tiles::JpegPiece piece;
  piece.bytes = variant.bytes;
  piece.width = piece.height = piece.height_max = kSide;
  piece.components = variant.index % 2 == 0 ? 3 : 1;
  piece.is_ycbcr = variant.index < 2;
  std::vector<std::uint8_t> out(kSide * kSide * 3);
  tiles::JpegDecoder decoder;
  return decoder.Decode(piece, {5, 3, 20, 25}, out.data(), kSide * 3).ok();
}

std::vector<std::string> JpegSeeds() {
  const std::string pixels = Pixels();
  std::vector<std::string> seeds;
  for (const int quality : {30, 90}) {
    JpegEncoder encoder(quality);
    std::vector<std::byte> jpeg;
    const auto* rgb = reinterpret_cast<const std::uint8_t*>(pixels.data());
    if (!encoder.Encode({rgb, kSide, kSide}, jpeg).ok()) std::abort();
    const std::string tables = *encoder.Tables();
    // One stream of tables and image: the marker that ends the one and that begins the other go.
    const std::string text(AsText(jpeg));
    seeds.push_back(Prefixed(0, tables.substr(0, tables.size() - 2) + text.substr(2)));
  }
  return seeds;
}

bool ReadJpeg2000(std::span<const std::byte> bytes) {
  const Variant variant(bytes, 3);
  if (variant.index < 2) {
    std::vector<std::uint8_t> rgb(kSide * kSide * 3);
    return tiles::DecodeJpeg2000({variant.bytes, kSide, kSide, variant.index == 1},
                                 {3, 5, kSide / 2, kSide / 2}, rgb.data())
        .ok();
  }
  std::vector<std::int32_t> values(kSide * kSide);
  tiles::GreyJpeg2000 grey{kSide, kSide, values};
  return tiles::DecodeGreyJpeg2000(variant.bytes, grey).ok();
}

/// Two codestreams lie in inputs/jpeg2000: nothing here writes them.
std::vector<std::string> NoSeeds() { return {}; }

}  // namespace

std::vector<FuzzTarget> SlideTargets() {
  return {{"tiff", ReadTiff, TiffSeeds},
          {"flat_tile", ReadFlat, FlatSeeds},
          {"jpeg_tile", ReadJpeg, JpegSeeds},
          {"jpeg2000", ReadJpeg2000, NoSeeds}};
}

}  // namespace patchbay::fuzz
