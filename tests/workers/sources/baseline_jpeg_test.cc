// The decoder of baseline JPEG beside libjpeg.
#include "runtime/format/tiles/baseline_jpeg.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include <gtest/gtest.h>
#include <jpeglib.h>
// After jpeglib.h, which it needs.
#include <jerror.h>

#include "runtime/core/hash.h"
#include "runtime/core/random.h"
#include "runtime/core/strings.h"

namespace patchbay::tiles {
namespace {

struct Form {
  int width = 37, height = 41;
  int components = 3;
  int h = 1, v = 1;  ///< samples of the first component for one of the others
  int quality = 75;
  int restart_interval = 0;  ///< MCUs
  bool is_progressive = false;
};

class Compressor {
 public:
  explicit Compressor(const Form& form) {
    cinfo.err = jpeg_std_error(&errors_);
    jpeg_create_compress(&cinfo);
    jpeg_mem_dest(&cinfo, &bytes_, &size_);
    cinfo.image_width = static_cast<JDIMENSION>(form.width);
    cinfo.image_height = static_cast<JDIMENSION>(form.height);
    cinfo.input_components = form.components;
    cinfo.in_color_space = form.components == 3 ? JCS_RGB : JCS_GRAYSCALE;
    jpeg_set_defaults(&cinfo);
    jpeg_set_quality(&cinfo, form.quality, TRUE);
    if (form.is_progressive) jpeg_simple_progression(&cinfo);
    cinfo.restart_interval = static_cast<unsigned>(form.restart_interval);
    cinfo.optimize_coding = TRUE;
    cinfo.comp_info[0].h_samp_factor = form.h;
    cinfo.comp_info[0].v_samp_factor = form.v;
  }
  std::string Finish() {
    jpeg_finish_compress(&cinfo);
    jpeg_destroy_compress(&cinfo);
    std::string out(reinterpret_cast<const char*>(bytes_), size_);
    std::free(bytes_);
    return out;
  }

  jpeg_compress_struct cinfo;

 private:
  jpeg_error_mgr errors_;
  unsigned char* bytes_ = nullptr;
  unsigned long size_ = 0;
};

std::uint32_t Noise(std::uint64_t row, std::size_t at) {
  DrawKey key;
  key.ordinal = row;
  return Draw(key, static_cast<std::uint32_t>(at)).word[0];
}

/// Noise beside a gradient and a flat area, so that blocks of every kind come.
std::string JpegOf(const Form& form) {
  Compressor compressor(form);
  jpeg_start_compress(&compressor.cinfo, TRUE);
  std::vector<JSAMPLE> row(static_cast<std::size_t>(form.width * form.components));
  for (int y = 0; y < form.height; ++y) {
    for (std::size_t i = 0; i < row.size(); ++i) {
      const std::uint32_t noise = Noise(static_cast<std::uint64_t>(y), i);
      const std::uint32_t kinds[] = {noise, static_cast<std::uint32_t>(3 * i) + noise % 8, 250};
      row[i] = static_cast<JSAMPLE>(kinds[(i / 40 + static_cast<std::size_t>(y) / 12) % 3]);
    }
    JSAMPROW rows = row.data();
    jpeg_write_scanlines(&compressor.cinfo, &rows, 1);
  }
  return compressor.Finish();
}

/// Coefficients that no encoder makes: sums of the transform overflow.
std::string WildJpegOf(const Form& form, int amplitude, std::uint32_t step_max) {
  Compressor compressor(form);
  jpeg_compress_struct& cinfo = compressor.cinfo;
  for (int table = 0; table < 2; ++table) {
    unsigned steps[DCTSIZE2];
    for (unsigned i = 0; i < DCTSIZE2; ++i) steps[i] = 1 + Noise(1000, i) % step_max;
    jpeg_add_quant_table(&cinfo, table, steps, 100, TRUE);
  }
  const auto blocks = [&](int size, int factor, int most) {
    return static_cast<JDIMENSION>((size + 8 * most - 1) / (8 * most) * factor);
  };
  jvirt_barray_ptr arrays[3];
  JDIMENSION columns[3], rows[3];
  for (int c = 0; c < 3; ++c) {
    columns[c] = blocks(form.width, c == 0 ? form.h : 1, form.h);
    rows[c] = blocks(form.height, c == 0 ? form.v : 1, form.v);
    arrays[c] = cinfo.mem->request_virt_barray(reinterpret_cast<j_common_ptr>(&cinfo), JPOOL_IMAGE,
                                               TRUE, columns[c], rows[c],
                                               static_cast<JDIMENSION>(c == 0 ? form.v : 1));
  }
  cinfo.mem->realize_virt_arrays(reinterpret_cast<j_common_ptr>(&cinfo));
  jpeg_write_coefficients(&cinfo, arrays);
  for (int c = 0; c < 3; ++c) {
    for (JDIMENSION y = 0; y < rows[c]; ++y) {
      JBLOCKARRAY row = cinfo.mem->access_virt_barray(reinterpret_cast<j_common_ptr>(&cinfo),
                                                      arrays[c], y, 1, TRUE);
      for (JDIMENSION x = 0; x < columns[c]; ++x) {
        // The first coefficient alone, the first row of them, some, all.
        const std::uint32_t kind = Noise(2000 + y, x) % 4;
        for (std::uint32_t k = 0; k < DCTSIZE2; ++k) {
          const std::uint32_t noise =
              Noise(3000 + y * 3 + static_cast<std::uint32_t>(c), x * 64 + k);
          const bool is_set =
              k == 0 || (kind == 1 && k < 8) || (kind == 2 && noise % 6 == 0) || kind == 3;
          const int value = static_cast<int>((noise >> 8) % (2u * amplitude + 1)) - amplitude;
          row[0][x][k] = static_cast<JCOEF>(is_set ? std::clamp(value, -1023, 1023) : 0);
        }
      }
    }
  }
  return compressor.Finish();
}

JpegPiece PieceOf(const std::string& jpeg, const Form& form, bool is_ycbcr = true) {
  return {{}, AsBytes(jpeg), form.width, form.height, form.height, form.components, is_ycbcr};
}

std::vector<std::uint8_t> DecodedByLibjpeg(const JpegPiece& piece) {
  jpeg_decompress_struct cinfo;
  jpeg_error_mgr errors;
  cinfo.err = jpeg_std_error(&errors);
  jpeg_create_decompress(&cinfo);
  jpeg_mem_src(&cinfo, reinterpret_cast<const unsigned char*>(piece.bytes.data()),
               piece.bytes.size());
  jpeg_read_header(&cinfo, TRUE);
  if (piece.components == 3) {
    cinfo.jpeg_color_space = piece.is_ycbcr ? JCS_YCbCr : JCS_RGB;
    cinfo.out_color_space = JCS_RGB;
  }
  jpeg_start_decompress(&cinfo);
  const auto stride = static_cast<std::size_t>(piece.width * piece.components);
  std::vector<std::uint8_t> pixels(stride * static_cast<std::size_t>(piece.height));
  while (cinfo.output_scanline < cinfo.output_height) {
    JSAMPROW row = pixels.data() + cinfo.output_scanline * stride;
    jpeg_read_scanlines(&cinfo, &row, 1);
  }
  jpeg_destroy_decompress(&cinfo);
  return pixels;
}

/// Windows at every `step`th offset, of sizes that change with it, and the whole.
void ExpectLibjpegsPixels(const JpegPiece& piece, int step) {
  const std::vector<std::uint8_t> whole = DecodedByLibjpeg(piece);
  const auto pixel = static_cast<std::size_t>(piece.components);
  const auto row_bytes = static_cast<std::size_t>(piece.width) * pixel;
  constexpr std::uint8_t kUntouched = 0xA5;
  BaselineJpeg decoder;
  const auto expect = [&](const PixelWindow& window) {
    const std::size_t stride = static_cast<std::size_t>(window.width) * pixel;
    const std::size_t size = stride * static_cast<std::size_t>(window.height);
    std::vector<std::uint8_t> part(size + 64, kUntouched);
    ASSERT_TRUE(decoder.Decode(piece, window, part.data(), stride));
    for (int row = 0; row < window.height; ++row) {
      const std::size_t at = static_cast<std::size_t>(window.y + row) * row_bytes +
                             static_cast<std::size_t>(window.x) * pixel;
      ASSERT_EQ(std::memcmp(part.data() + static_cast<std::size_t>(row) * stride, whole.data() + at,
                            stride),
                0)
          << "window of " << window.height << " x " << window.width << " at row " << window.y
          << " column " << window.x << ": row " << row;
    }
    ASSERT_EQ(std::count(part.begin() + static_cast<std::ptrdiff_t>(size), part.end(), kUntouched),
              64);
  };
  expect({0, 0, piece.height, piece.width});
  constexpr int kSizes[][2] = {{7, 11}, {1, 1}, {20, 3}, {2, 29}, {40, 40}};
  for (int y = 0; y < piece.height; y += step) {
    for (int x = 0; x < piece.width; x += step) {
      const auto& size = kSizes[(x + y) % 5];
      expect({y, x, std::min(size[0], piece.height - y), std::min(size[1], piece.width - x)});
      if (testing::Test::HasFatalFailure()) return;
    }
  }
}

constexpr std::pair<int, int> kSamplings[] = {{1, 1}, {2, 1}, {2, 2}};

TEST(BaselineJpeg, EveryWindowOfEverySamplingHasThePixelsOfLibjpeg) {
  for (const auto& [h, v] : kSamplings) {
    for (const auto& [width, height] : {std::pair(37, 41), {64, 48}, {5, 20}, {70, 3}}) {
      for (const bool is_ycbcr : {true, false}) {
        SCOPED_TRACE(StrCat(h, " x ", v, ", ", width, " x ", height, ", YCbCr ", is_ycbcr));
        const Form form{.width = width, .height = height, .h = h, .v = v};
        const std::string jpeg = JpegOf(form);
        ExpectLibjpegsPixels(PieceOf(jpeg, form, is_ycbcr), 1);
      }
    }
  }
  const Form grey{.components = 1, .h = 2, .v = 2};
  const std::string jpeg = JpegOf(grey);
  ExpectLibjpegsPixels(PieceOf(jpeg, grey, false), 1);
}

TEST(BaselineJpeg, EveryQualityHasThePixelsOfLibjpeg) {
  for (const auto& [h, v] : kSamplings) {
    for (const int quality : {5, 30, 60, 90, 98, 100}) {
      SCOPED_TRACE(StrCat(h, " x ", v, ", quality ", quality));
      const Form form{.width = 150, .height = 70, .h = h, .v = v, .quality = quality};
      const std::string jpeg = JpegOf(form);
      ExpectLibjpegsPixels(PieceOf(jpeg, form), 13);
    }
  }
}

TEST(BaselineJpeg, CoefficientsThatOverflowHaveThePixelsOfLibjpeg) {
  for (const auto& [h, v] : kSamplings) {
    for (const int amplitude : {1, 40, 1023}) {
      for (const std::uint32_t step_max : {1u, 20u, 255u}) {
        SCOPED_TRACE(StrCat(h, " x ", v, ", up to ", amplitude, " times ", step_max));
        const Form form{.width = 90, .height = 50, .h = h, .v = v};
        const std::string jpeg = WildJpegOf(form, amplitude, step_max);
        ExpectLibjpegsPixels(PieceOf(jpeg, form), 7);
      }
    }
  }
}

/// Whether the decoder takes an image of `form`, and of what the bytes say alone.
bool IsTaken(const std::string& jpeg, const Form& form) {
  std::vector<std::uint8_t> out(static_cast<std::size_t>(form.width * form.height * 3));
  return BaselineJpeg().Decode(PieceOf(jpeg, form), {0, 0, form.height, form.width}, out.data(),
                               static_cast<std::size_t>(form.width * form.components));
}

TEST(BaselineJpeg, OtherFormsAreLeftToLibjpeg) {
  EXPECT_TRUE(IsTaken(JpegOf({}), {}));
  const Form others[] = {{.h = 4, .v = 1},
                         {.h = 1, .v = 2},
                         {.width = 4, .h = 2},
                         {.restart_interval = 2},
                         {.is_progressive = true}};
  for (const Form& form : others) EXPECT_FALSE(IsTaken(JpegOf(form), form));
  // Sizes and counts differ from what the container states.
  EXPECT_FALSE(IsTaken(JpegOf({}), {.width = 38}));
  EXPECT_FALSE(IsTaken(JpegOf({}), {.height = 40}));
  EXPECT_FALSE(IsTaken(JpegOf({}), {.height = 42}));
  EXPECT_FALSE(IsTaken(JpegOf({}), {.components = 1}));
  const std::string jpeg = JpegOf({});
  std::vector<std::uint8_t> out(37 * 41 * 3);
  for (const PixelWindow& window : {PixelWindow{-1, 0, 2, 2}, {0, 36, 2, 2}, {40, 0, 2, 2}}) {
    EXPECT_FALSE(BaselineJpeg().Decode(PieceOf(jpeg, {}), window, out.data(), 6));
  }
}

TEST(BaselineJpeg, ImagesWithMissingOrSurplusBytesAreLeftToLibjpeg) {
  for (const auto& [h, v] : kSamplings) {
    const Form form{.h = h, .v = v};
    const std::string good = JpegOf(form);
    for (std::size_t cut = 0; cut < good.size(); cut += 3) {
      ASSERT_FALSE(IsTaken(good.substr(0, cut), form)) << "cut at " << cut;
      // The end marker is there, codes before it are not.
      if (cut + 2 < good.size()) {
        ASSERT_FALSE(IsTaken(good.substr(0, cut) + "\xFF\xD9", form)) << "ends at " << cut;
      }
    }
    EXPECT_FALSE(IsTaken(good.substr(0, good.size() - 2) + "\x55\xFF\xD9", form));
    EXPECT_TRUE(IsTaken(good + "bytes behind it", form));
  }
}

/// Warnings about the codes of an image; one about a number of its header is none.
int CountWarnings(const std::string& jpeg) {
  jpeg_decompress_struct cinfo;
  jpeg_error_mgr errors;
  cinfo.err = jpeg_std_error(&errors);
  errors.emit_message = [](j_common_ptr common, int level) {
    if (level < 0 && common->err->msg_code != JWRN_JFIF_MAJOR) ++common->err->num_warnings;
  };
  jpeg_create_decompress(&cinfo);
  jpeg_mem_src(&cinfo, reinterpret_cast<const unsigned char*>(jpeg.data()), jpeg.size());
  jpeg_read_header(&cinfo, TRUE);
  jpeg_start_decompress(&cinfo);
  std::vector<JSAMPLE> row(cinfo.output_width * std::size_t{4});
  JSAMPROW rows = row.data();
  while (cinfo.output_scanline < cinfo.output_height) jpeg_read_scanlines(&cinfo, &rows, 1);
  jpeg_finish_decompress(&cinfo);
  jpeg_destroy_decompress(&cinfo);
  return static_cast<int>(errors.num_warnings);
}

TEST(BaselineJpeg, NoDamageIsTakenThatLibjpegRefuses) {
  for (const auto& [h, v] : kSamplings) {
    const Form form{.h = h, .v = v};
    const std::string good = JpegOf(form);
    std::size_t taken = 0;
    for (std::size_t at = 0; at < good.size(); at += 3) {
      std::string bytes = good;
      bytes[at] = static_cast<char>(bytes[at] ^ (1 << at % 8));
      if (!IsTaken(bytes, form)) continue;
      ++taken;
      ASSERT_EQ(CountWarnings(bytes), 0) << "byte " << at;
      ExpectLibjpegsPixels(PieceOf(bytes, form), 23);
    }
    EXPECT_GT(taken, good.size() / 60);
    EXPECT_LT(taken, good.size() * 19 / 60);
  }
}

}  // namespace
}  // namespace patchbay::tiles
