// The decoders by themselves, on streams made here.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <utility>

#include <gtest/gtest.h>
#include <jpeglib.h>
#include <webp/encode.h>

#include "runtime/format/tiles/jpeg2000_decoder.h"
#include "runtime/format/tiles/jpeg_decoder.h"
#include "tests/workers/sources/crafted_tiff.h"
#include "tests/workers/sources/jpeg2000_writer.h"
#include "workers/sources/flat_codecs.h"
#include "workers/sources/tiff_source.h"
#include "workers/sources/webp_decoder.h"

namespace patchbay::workers {
namespace {

std::vector<std::uint8_t> Gradient(int width, int height) {
  std::vector<std::uint8_t> rgb;
  for (int y = 0; y < height; ++y) {
    for (int x = 0; x < width; ++x) {
      rgb.push_back(static_cast<std::uint8_t>(x * 3 + y));
      rgb.push_back(static_cast<std::uint8_t>(200 - y * 2));
      rgb.push_back(static_cast<std::uint8_t>((x * y) % 251));
    }
  }
  return rgb;
}

/// How a codestream is written, beside the parameters of all tests.
struct Jpeg2000Form {
  int style = 0;        ///< adds markers before (2) and in (4) every packet
  OPJ_UINT32 step = 1;  ///< columns for one sample of the second and third component
  bool is_lossy = false;
};

/// A raw codestream, with the colour transform inside where all components have the same size.
std::string EncodeJpeg2000(const std::vector<std::uint8_t>& rgb, int width, int height,
                           const Jpeg2000Form& form = {}) {
  const auto columns = static_cast<OPJ_UINT32>(width), rows = static_cast<OPJ_UINT32>(height);
  opj_image_cmptparm_t parts[3] = {};
  for (auto& part : parts) {
    part.dx = &part == parts ? 1 : form.step;
    part.dy = 1;
    part.w = (columns + part.dx - 1) / part.dx;
    part.h = rows;
    part.prec = 8;
  }
  opj_image_t* image = opj_image_create(3, parts, OPJ_CLRSPC_SRGB);
  image->x1 = columns;
  image->y1 = rows;
  for (OPJ_UINT32 i = 0; i < 3; ++i) {
    const OPJ_UINT32 dx = parts[i].dx, w = parts[i].w;
    for (OPJ_UINT32 k = 0; k < w * rows; ++k) {
      image->comps[i].data[k] = rgb[(k / w * columns + k % w * dx) * 3 + i];
    }
  }
  opj_cparameters_t parameters = Jpeg2000Parameters();
  parameters.tcp_mct = form.step == 1;
  parameters.csty |= form.style;
  parameters.irreversible = form.is_lossy ? 1 : 0;
  parameters.tcp_rates[0] = form.is_lossy ? 6 : 0;
  parameters.cblockw_init = parameters.cblockh_init = 8;
  return CompressJpeg2000(image, parameters);
}

Status DecodeRgbJpeg2000(std::string_view bytes, int width, std::uint8_t* rgb) {
  return tiles::DecodeJpeg2000({AsBytes(bytes), width, 32, false}, {0, 0, 32, width}, rgb);
}

TEST(Jpeg2000Decoder, RgbTilesOfASlideAreExact) {
  const auto rgb = Gradient(32, 32);
  CraftedImage image;
  image.width = image.height = 60;
  image.tile = 32;
  image.compression = 33005;
  image.description = "Aperio Image|MPP = 0.25";
  image.pieces.assign(4, EncodeJpeg2000(rgb, 32, 32));
  TemporaryFolder folder;
  ASSERT_TRUE(WriteTiff(folder.File("a.svs"), {image}).ok());
  const auto source = OpenImage(Folders::OfThisUser(), folder.File("a.svs"));
  ASSERT_TRUE(source.ok()) << Describe(source.status());
  EXPECT_EQ((*source)->layout().kind, "aperio");
  PatchReader reader(**source);
  const auto pixels = reader.Read(0, Box2D(32, 0, 28, 32), 0);
  ASSERT_TRUE(pixels.ok()) << Describe(pixels.status());
  EXPECT_TRUE(std::equal((*pixels)->begin(), (*pixels)->end(), rgb.begin()));
}

TEST(Jpeg2000Decoder, ShortOrOtherwiseSizedStreamIsDataLoss) {
  const std::string good = EncodeJpeg2000(Gradient(32, 32), 32, 32);
  std::vector<std::uint8_t> rgb(64 * 64 * 3);
  EXPECT_TRUE(DecodeRgbJpeg2000(good, 32, rgb.data()).ok());
  EXPECT_TRUE(absl::IsDataLoss(DecodeRgbJpeg2000(good, 64, rgb.data())));
  for (std::size_t cut = 0; cut + 2 < good.size(); cut += 7) {
    const tiles::Jpeg2000Piece piece{AsBytes(good).first(cut), 32, 32, false};
    for (const tiles::PixelWindow& window :
         {tiles::PixelWindow{0, 0, 32, 32}, {0, 0, 1, 1}, {9, 20, 4, 5}}) {
      EXPECT_TRUE(absl::IsDataLoss(tiles::DecodeJpeg2000(piece, window, rgb.data())))
          << "cut at " << cut << " of " << good.size() << " window " << window.y;
    }
  }
}

TEST(Jpeg2000Decoder, WhatOpenJpegOnlyWarnsOfIsDataLoss) {
  const std::string good = EncodeJpeg2000(Gradient(32, 32), 32, 32, {.style = 2});
  std::vector<std::uint8_t> rgb(32 * 32 * 3);
  EXPECT_TRUE(DecodeRgbJpeg2000(good, 32, rgb.data()).ok());
  const std::size_t packet = good.find("\xFF\x91");
  ASSERT_NE(packet, std::string::npos);
  std::string bytes = good;
  bytes[packet + 1] ^= 4;
  const Status status = DecodeRgbJpeg2000(bytes, 32, rgb.data());
  EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss) << Describe(status);
}

/// Steps that no block of codes or samples has, so that all their offsets come.
void ExpectWindowsEqualTheWhole(const tiles::Jpeg2000Piece& piece) {
  const int width = piece.width, height = piece.height;
  std::vector<std::uint8_t> whole(static_cast<std::size_t>(3 * width * height)), part = whole;
  ASSERT_TRUE(tiles::DecodeJpeg2000(piece, {0, 0, height, width}, whole.data()).ok());
  for (int y = 0; y < height; y += 3) {
    for (int x = y % 2; x < width; x += 2) {
      const tiles::PixelWindow window{y, x, std::min(1 + x % 7, height - y),
                                      std::min(9, width - x)};
      ASSERT_TRUE(tiles::DecodeJpeg2000(piece, window, part.data()).ok());
      for (int row = 0; row < window.height; ++row) {
        ASSERT_EQ(std::memcmp(part.data() + row * window.width * 3,
                              whole.data() + ((y + row) * width + x) * 3,
                              static_cast<std::size_t>(window.width) * 3),
                  0)
            << "row " << y + row << " column " << x;
      }
    }
  }
}

TEST(Jpeg2000Decoder, EveryWindowEqualsTheCutOfTheWhole) {
  for (const bool is_lossy : {false, true}) {
    for (const OPJ_UINT32 step : {1u, 2u}) {
      SCOPED_TRACE(StrCat("lossy ", is_lossy, ", step ", step));
      const Jpeg2000Form form{.step = step, .is_lossy = is_lossy};
      const std::string bytes = EncodeJpeg2000(Gradient(45, 33), 45, 33, form);
      ExpectWindowsEqualTheWhole({AsBytes(bytes), 45, 33, step == 2});
    }
  }
}

/// Windows of several sizes at every offset of the image.
void ExpectWindowsEqualTheWhole(const tiles::JpegPiece& piece) {
  const int width = piece.width, height = piece.height;
  const auto row_bytes = static_cast<std::size_t>(width * piece.components);
  tiles::JpegDecoder decoder;
  std::vector<std::uint8_t> whole(row_bytes * static_cast<std::size_t>(height)), part(whole.size());
  ASSERT_TRUE(decoder.Decode(piece, {0, 0, height, width}, whole.data(), row_bytes).ok());
  constexpr int kSizes[][2] = {{7, 11}, {1, 1}, {20, 3}, {2, 29}};
  for (int y = 0; y < height; ++y) {
    for (int x = 0; x < width; ++x) {
      const auto& size = kSizes[(x + y) % 4];
      const tiles::PixelWindow window{y, x, std::min(size[0], height - y),
                                      std::min(size[1], width - x)};
      ASSERT_TRUE(decoder.Decode(piece, window, part.data(), row_bytes).ok());
      for (int row = 0; row < window.height; ++row) {
        const std::size_t at = static_cast<std::size_t>(y + row) * row_bytes +
                               static_cast<std::size_t>(x * piece.components);
        ASSERT_EQ(
            std::memcmp(part.data() + static_cast<std::size_t>(row) * row_bytes, whole.data() + at,
                        static_cast<std::size_t>(window.width * piece.components)),
            0)
            << "row " << y + row << " column " << x;
      }
    }
  }
}

void ExpectRgbWindowsEqualTheWhole(int width, int height) {
  const auto rgb = Gradient(width, height);
  JpegEncoder encoder(85);
  std::vector<std::byte> bytes;
  ASSERT_TRUE(encoder.Encode({rgb.data(), width, height}, bytes).ok());
  const std::string tables = *encoder.Tables();
  // Without codes a tile has the usual ones; such tiles libjpeg-turbo decodes.
  const std::string steps_alone = tables.substr(0, tables.find("\xFF\xC4")) + "\xFF\xD9";
  ASSERT_LT(steps_alone.size(), tables.size());
  std::vector<std::uint8_t> whole[2];
  for (const std::string* of : {&tables, &steps_alone}) {
    const tiles::JpegPiece piece{*of, bytes, width, height, height, 3, false};
    std::vector<std::uint8_t>& pixels = whole[of == &tables ? 0 : 1];
    pixels.resize(rgb.size());
    ASSERT_TRUE(
        tiles::JpegDecoder().Decode(piece, {0, 0, height, width}, pixels.data(), width * 3).ok());
    ExpectWindowsEqualTheWhole(piece);
  }
  EXPECT_EQ(whole[0], whole[1]);
  double lost = 0;
  for (std::size_t i = 0; i < rgb.size(); ++i) lost += std::abs(whole[0][i] - rgb[i]);
  EXPECT_LT(lost / static_cast<double>(rgb.size()), 15) << "grey values a sample";
}

TEST(JpegEncoder, TablesAfterAnImageAreWhole) {
  const auto rgb = Gradient(16, 16);
  JpegEncoder encoder(85);
  const std::string before = *encoder.Tables();
  EXPECT_NE(before.find("\xFF\xC4"), std::string::npos);
  std::vector<std::byte> bytes;
  ASSERT_TRUE(encoder.Encode({rgb.data(), 16, 16}, bytes).ok());
  EXPECT_EQ(*encoder.Tables(), before);
}

TEST(JpegDecoder, EveryWindowEqualsTheCutOfTheWhole) {
  ExpectRgbWindowsEqualTheWhole(56, 40);
  ExpectRgbWindowsEqualTheWhole(53, 37);
}

/// Noise as YCbCr, its brightness `h` x `v` samples for one of colour; as grey with one component.
std::string SubsampledJpeg(const tiles::JpegPiece& piece, int h, int v) {
  jpeg_compress_struct cinfo;
  jpeg_error_mgr errors;
  cinfo.err = jpeg_std_error(&errors);
  jpeg_create_compress(&cinfo);
  unsigned char* bytes = nullptr;
  unsigned long size = 0;
  jpeg_mem_dest(&cinfo, &bytes, &size);
  cinfo.image_width = static_cast<JDIMENSION>(piece.width);
  cinfo.image_height = static_cast<JDIMENSION>(piece.height);
  cinfo.input_components = piece.components;
  cinfo.in_color_space = piece.components == 3 ? JCS_RGB : JCS_GRAYSCALE;
  jpeg_set_defaults(&cinfo);
  cinfo.comp_info[0].h_samp_factor = h;
  cinfo.comp_info[0].v_samp_factor = v;
  jpeg_start_compress(&cinfo, TRUE);
  std::vector<JSAMPLE> row(static_cast<std::size_t>(piece.width * piece.components));
  DrawKey key;
  for (int y = 0; y < piece.height; ++y) {
    key.ordinal = static_cast<std::uint64_t>(y);
    for (std::size_t i = 0; i < row.size(); ++i) {
      row[i] = static_cast<JSAMPLE>(Draw(key, static_cast<std::uint32_t>(i)).word[0]);
    }
    JSAMPROW rows = row.data();
    jpeg_write_scanlines(&cinfo, &rows, 1);
  }
  jpeg_finish_compress(&cinfo);
  jpeg_destroy_compress(&cinfo);
  std::string out(reinterpret_cast<const char*>(bytes), size);
  std::free(bytes);
  return out;
}

TEST(JpegDecoder, EveryWindowOfASubsampledImageEqualsTheCutOfTheWhole) {
  for (const int components : {3, 1}) {
    for (const auto& [h, v] : {std::pair(1, 1), {2, 1}, {2, 2}, {1, 2}, {4, 1}}) {
      for (const auto& [width, height] : {std::pair(53, 37), {32, 48}, {5, 20}}) {
        SCOPED_TRACE(StrCat(components, " components, ", h, " x ", v, ", ", width, " x ", height));
        tiles::JpegPiece piece{{}, {}, width, height, height, components, true};
        const std::string jpeg = SubsampledJpeg(piece, h, v);
        piece.bytes = AsBytes(jpeg);
        ExpectWindowsEqualTheWhole(piece);
      }
    }
  }
}

TEST(JpegDecoder, DamageThatTheWholeShowsIsDataLossForEveryWindow) {
  tiles::JpegPiece piece{{}, {}, 64, 64, 64, 3, true};
  const std::string good = SubsampledJpeg(piece, 2, 2);
  tiles::JpegDecoder decoder;
  std::vector<std::uint8_t> out(64 * 64 * 3);
  int refused = 0;
  for (std::size_t at = 0; at < good.size(); at += 5) {
    std::string bytes = good;
    bytes[at] = static_cast<char>(bytes[at] ^ (1 << at % 8));
    piece.bytes = AsBytes(bytes);
    const bool is_good = decoder.Decode(piece, {0, 0, 64, 64}, out.data(), 192).ok();
    refused += is_good ? 0 : 1;
    for (const tiles::PixelWindow& window :
         {tiles::PixelWindow{0, 0, 4, 4}, {17, 33, 9, 8}, {40, 0, 24, 64}}) {
      EXPECT_EQ(decoder.Decode(piece, window, out.data(), 192).ok(), is_good)
          << "byte " << at << " window " << window.y << ',' << window.x;
    }
  }
  EXPECT_GT(refused, static_cast<int>(good.size()) / 50);
}

TEST(JpegDecoder, EveryCutOfTheStreamIsDataLoss) {
  const auto rgb = Gradient(32, 32);
  JpegEncoder encoder(85);
  std::vector<std::byte> bytes;
  ASSERT_TRUE(encoder.Encode({rgb.data(), 32, 32}, bytes).ok());
  const std::string tables = *encoder.Tables();
  tiles::JpegDecoder decoder;
  std::vector<std::uint8_t> out(32 * 32 * 3);
  for (std::size_t cut = 0; cut + 2 < bytes.size(); ++cut) {
    const tiles::JpegPiece piece{tables, std::span(bytes).first(cut), 32, 32, 32, 3, false};
    ASSERT_EQ(decoder.Decode(piece, {0, 0, 32, 32}, out.data(), 96).code(),
              absl::StatusCode::kDataLoss)
        << "cut at " << cut << " of " << bytes.size();
  }
}

/// A progressive gray JPEG of 16 x 24 pixels in so many scans: each coefficient by itself, bit by
/// bit. At least 2, at most 190.
std::string JpegInScans(int scans) {
  jpeg_compress_struct cinfo;
  jpeg_error_mgr errors;
  cinfo.err = jpeg_std_error(&errors);
  jpeg_create_compress(&cinfo);
  unsigned char* bytes = nullptr;
  unsigned long size = 0;
  jpeg_mem_dest(&cinfo, &bytes, &size);
  cinfo.image_width = 16;
  cinfo.image_height = 24;
  cinfo.input_components = 1;
  cinfo.in_color_space = JCS_GRAYSCALE;
  jpeg_set_defaults(&cinfo);
  std::vector<jpeg_scan_info> script = {{1, {0}, 0, 0, 0, 0}};
  for (int k = 1; k < 64; ++k) {
    for (int bit = 2; bit >= 0; --bit)
      script.push_back({1, {0}, k, k, bit == 2 ? 0 : bit + 1, bit});
  }
  cinfo.scan_info = script.data();
  cinfo.num_scans = scans;
  jpeg_start_compress(&cinfo, TRUE);
  for (int y = 0; y < 24; ++y) {
    JSAMPLE row[16];
    for (int x = 0; x < 16; ++x) row[x] = static_cast<JSAMPLE>((x * 37 + y * 91) % 256);
    JSAMPROW rows = row;
    jpeg_write_scanlines(&cinfo, &rows, 1);
  }
  jpeg_finish_compress(&cinfo);
  jpeg_destroy_compress(&cinfo);
  std::string out(reinterpret_cast<const char*>(bytes), size);
  std::free(bytes);
  return out;
}

Status DecodeGray(const std::string& jpeg, int height, int height_max) {
  tiles::JpegPiece piece;
  piece.bytes = AsBytes(jpeg);
  piece.width = 16;
  piece.height = height;
  piece.height_max = height_max;
  piece.components = 1;
  std::vector<std::uint8_t> out(16 * 24);
  return tiles::JpegDecoder().Decode(piece, {0, 0, height, 16}, out.data(), 16);
}

TEST(JpegDecoder, ReadsSoManyScansAndNoMore) {
  EXPECT_EQ(DecodeGray(JpegInScans(128), 24, 24), absl::OkStatus());
  const Status more = DecodeGray(JpegInScans(129), 24, 24);
  EXPECT_TRUE(absl::IsDataLoss(more)) << more;
  EXPECT_NE(MessageOf(more).find("more than 128 scans"), std::string_view::npos) << more;
}

TEST(JpegDecoder, TheLastStripMayHaveMoreRowsButNotFewerNorTooMany) {
  const std::string jpeg = JpegInScans(2);
  EXPECT_EQ(DecodeGray(jpeg, 20, 24), absl::OkStatus());
  EXPECT_TRUE(absl::IsDataLoss(DecodeGray(jpeg, 20, 23)));
  tiles::JpegPiece piece;
  piece.bytes = AsBytes(jpeg);
  piece.width = 16;
  piece.height = piece.height_max = 25;
  piece.components = 1;
  std::vector<std::uint8_t> out(16 * 25);
  EXPECT_TRUE(absl::IsDataLoss(tiles::JpegDecoder().Decode(piece, {0, 0, 25, 16}, out.data(), 16)));
}

TEST(FlatCodecs, LzwStringsThatNameThemselvesDecode) {
  // Clear, 'A', 258 (= "AA", not yet defined), 259 (= "AAA"), end: 9-bit codes.
  const std::uint32_t codes[] = {256, 'A', 258, 259, 257};
  std::string bytes;
  std::uint64_t held = 0;
  int bits = 0;
  for (std::uint32_t code : codes) {
    held = held << 9 | code;
    for (bits += 9; bits >= 8; bits -= 8) bytes.push_back(static_cast<char>(held >> (bits - 8)));
  }
  bytes.push_back(static_cast<char>(held << (8 - bits)));
  std::vector<std::uint8_t> out(6);
  ASSERT_TRUE(DecodeFlat(TiffCompression::kLzw, AsBytes(bytes), out).ok());
  EXPECT_EQ(out, std::vector<std::uint8_t>(6, 'A'));
  out.resize(7);
  EXPECT_EQ(DecodeFlat(TiffCompression::kLzw, AsBytes(bytes), out).code(),
            absl::StatusCode::kDataLoss);
}

TEST(FlatCodecs, PredictorAddsUpAlongRowsPerSample) {
  std::vector<std::uint8_t> samples = {1, 2, 3, 1, 1, 1, 255, 0, 2, 9, 9, 9, 1, 1, 1, 1, 1, 1};
  UndoHorizontalPredictor(samples, 9, 3);
  EXPECT_EQ(samples, (std::vector<std::uint8_t>{1, 2, 3, 2, 3, 4, 1, 3, 6, 9, 9, 9, 10, 10, 10, 11,
                                                11, 11}));
}

TEST(FlatCodecs, PredictorOf16BitsCarriesFromByteToByte) {
  std::vector<std::uint16_t> samples = {250, 7, 10, 65535, 1, 2, 0xFFF0, 3, 0x20, 1, 1, 1};
  const std::span<std::uint8_t> bytes(reinterpret_cast<std::uint8_t*>(samples.data()), 24);
  SwapSamples(bytes);
  SwapSamples(bytes);
  UndoHorizontalPredictor(bytes, 12, 2, 2);
  EXPECT_EQ(samples,
            (std::vector<std::uint16_t>{250, 7, 260, 6, 261, 8, 0xFFF0, 3, 0x10, 4, 0x11, 5}));
}

std::string Webp(const std::vector<std::uint8_t>& pixels, int width, int height, bool is_rgba) {
  std::uint8_t* made = nullptr;
  const std::size_t size =
      is_rgba ? WebPEncodeLosslessRGBA(pixels.data(), width, height, 4 * width, &made)
              : WebPEncodeLosslessRGB(pixels.data(), width, height, 3 * width, &made);
  const std::string bytes(reinterpret_cast<const char*>(made), size);
  WebPFree(made);
  return bytes;
}

TEST(WebpDecoder, ImagesAreWholeAndOfTheStatedSizeOrRefused) {
  const std::vector<std::uint8_t> rgb = Gradient(40, 30);
  const std::string whole = Webp(rgb, 40, 30, false);
  std::vector<std::uint8_t> out(40 * 32 * 3);
  const auto decode = [&](const std::string& bytes, int width = 40, int rows_min = 30) {
    const auto rows = DecodeWebp(AsBytes(bytes), width, rows_min, 32, out);
    return rows.ok() ? StrCat(*rows, " rows") : std::string(rows.status().message());
  };
  EXPECT_EQ(decode(whole), "30 rows");
  EXPECT_TRUE(std::equal(rgb.begin(), rgb.end(), out.begin()));
  EXPECT_EQ(decode(whole + std::string(3, '\0')), "30 rows");
  EXPECT_EQ(decode(whole + "x"), "webp: 1 bytes after the end of the image");
  EXPECT_EQ(decode(whole, 39), "webp: 40 x 30 pixels where the file states 39 x 32");
  EXPECT_EQ(decode(whole, 40, 31), "webp: 40 x 30 pixels where the file states 40 x 32");
  EXPECT_EQ(decode(Webp(Gradient(40, 32), 40, 32, false)), "32 rows");
  EXPECT_EQ(decode(""), "webp: it does not begin as an image does");
  EXPECT_EQ(decode(std::string(40, 'a')), "webp: it does not begin as an image does");
  EXPECT_NE(decode(whole.substr(0, whole.size() / 2)).find("webp: cut short"), std::string::npos);
  std::string shorter = whole.substr(0, whole.size() / 2);  // with a length that says so
  for (std::size_t i = 0; i < 4; ++i) {
    shorter[4 + i] = static_cast<char>((shorter.size() - 8) >> (8 * i));
  }
  EXPECT_EQ(decode(shorter).substr(0, 5), "webp:") << decode(shorter);
  std::vector<std::uint8_t> rgba;
  for (std::size_t i = 0; i < rgb.size(); i += 3) {
    rgba.insert(rgba.end(), {rgb[i], rgb[i + 1], rgb[i + 2], static_cast<std::uint8_t>(i % 250)});
  }
  EXPECT_EQ(decode(Webp(rgba, 40, 30, true)), "webp: an image that moves or is transparent");
}

TEST(WebpTiles, OfOtherThanColoursAreNotRead) {
  CraftedImage image;
  image.compression = 50001;
  FillFlat(image);
  image.samples = 1;
  image.photometric = 1;
  TemporaryFolder folder;
  ASSERT_TRUE(WriteTiff(folder.File("a.tif"), {image}).ok());
  const auto opened = OpenTiffImage(Folders::OfThisUser(), folder.File("a.tif"));
  EXPECT_NE(Describe(opened.status()).find("WebP of other than 3 interleaved samples"),
            std::string::npos)
      << Describe(opened.status());
}

}  // namespace
}  // namespace patchbay::workers
