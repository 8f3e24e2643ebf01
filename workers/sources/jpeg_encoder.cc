#include "workers/sources/jpeg_encoder.h"

#include <csetjmp>
#include <cstdio>
#include <cstdlib>

#include <jpeglib.h>

#include "runtime/core/strings.h"
#include "runtime/format/tiles/jpeg_errors.h"

namespace patchbay::workers {
namespace {}  // namespace

struct JpegEncoder::State {
  jpeg_compress_struct cinfo;
  tiles::JpegErrors error;
  int quality = 0;
  unsigned char* buffer = nullptr;  // grown by libjpeg with malloc
  unsigned long size = 0;

  ~State() {
    jpeg_destroy_compress(&cinfo);
    std::free(buffer);
  }

  /// Parameters are set for each image: the suppression of tables is one of them.
  void Begin(const RgbImage& image) {
    std::free(buffer);
    buffer = nullptr;
    size = 0;
    jpeg_mem_dest(&cinfo, &buffer, &size);
    cinfo.image_width = static_cast<JDIMENSION>(image.width);
    cinfo.image_height = static_cast<JDIMENSION>(image.height);
    cinfo.input_components = 3;
    cinfo.in_color_space = JCS_RGB;
    jpeg_set_defaults(&cinfo);
    jpeg_set_colorspace(&cinfo, JCS_RGB);
    jpeg_set_quality(&cinfo, quality, TRUE);
    cinfo.write_Adobe_marker = FALSE;
    cinfo.write_JFIF_header = FALSE;
    cinfo.dct_method = JDCT_ISLOW;
  }

  void WriteRows(const RgbImage& image) {
    jpeg_suppress_tables(&cinfo, TRUE);
    jpeg_start_compress(&cinfo, FALSE);
    const auto stride = static_cast<std::size_t>(image.width) * 3;
    while (cinfo.next_scanline < cinfo.image_height) {
      auto* row = const_cast<JSAMPROW>(image.data + cinfo.next_scanline * stride);
      jpeg_write_scanlines(&cinfo, &row, 1);
    }
    jpeg_finish_compress(&cinfo);
  }
};

JpegEncoder::JpegEncoder(int quality) : state_(std::make_unique<State>()) {
  State& s = *state_;
  s.quality = quality;
  s.cinfo.err = s.error.Open();
  // Fails only when out of memory or built against another libjpeg.
  if (setjmp(s.error.jump) != 0) CheckFailed(__FILE__, __LINE__, "jpeg_create_compress");
  jpeg_create_compress(&s.cinfo);
}

JpegEncoder::~JpegEncoder() = default;

StatusOr<std::string> JpegEncoder::Tables() {
  State& s = *state_;
  if (setjmp(s.error.jump) != 0) {
    jpeg_abort_compress(&s.cinfo);
    return Internal("write jpeg tables: ", s.error.message);
  }
  s.Begin({nullptr, 8, 8});
  // After an image the tables of codes are suppressed.
  jpeg_suppress_tables(&s.cinfo, FALSE);
  jpeg_write_tables(&s.cinfo);
  return std::string(reinterpret_cast<const char*>(s.buffer), s.size);
}

Status JpegEncoder::Encode(const RgbImage& image, std::vector<std::byte>& out) {
  State& s = *state_;
  if (setjmp(s.error.jump) != 0) {
    jpeg_abort_compress(&s.cinfo);
    return Internal("write jpeg: ", s.error.message);
  }
  s.Begin(image);
  s.WriteRows(image);
  const auto* bytes = reinterpret_cast<const std::byte*>(s.buffer);
  out.assign(bytes, bytes + s.size);
  return absl::OkStatus();
}

}  // namespace patchbay::workers
