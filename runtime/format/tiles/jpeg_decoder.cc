#include "runtime/format/tiles/jpeg_decoder.h"

#include <algorithm>
#include <csetjmp>
#include <cstdio>
#include <cstring>
#include <vector>

#include <jpeglib.h>
// After jpeglib.h, which it needs.
#include <jerror.h>

#include "runtime/core/strings.h"
#include "runtime/format/tiles/baseline_jpeg.h"
#include "runtime/format/tiles/jpeg_errors.h"
#include "runtime/format/tiles/tile_format.h"

namespace patchbay::tiles {
namespace {

/// A progressive image may repeat passes over the whole tile; more than this is an attack.
constexpr int kMaxScans = 128;

/// Columns decoded beside a cut through subsampled components: at least 3 of their samples, with
/// which libjpeg interpolates as in the whole image.
constexpr int kCutMargin = 6;

/// True for warnings with which libjpeg reports corrupt data but continues, with invented pixels or
/// skipped bytes.
bool MeansDamage(int message) {
  switch (message) {
    case JWRN_ARITH_BAD_CODE:
    case JWRN_BOGUS_PROGRESSION:
    case JWRN_EXTRANEOUS_DATA:
    case JWRN_HIT_MARKER:
    case JWRN_HUFF_BAD_CODE:
    case JWRN_JPEG_EOF:
    case JWRN_MUST_RESYNC:
    case JWRN_NOT_SEQUENTIAL:
      return true;
    default:
      return false;
  }
}

void OnMessage(j_common_ptr cinfo, int level) {
  if (level < 0 && MeansDamage(cinfo->err->msg_code)) JpegErrors::Jump(cinfo);
}

void OnProgress(j_common_ptr cinfo) {
  auto* decompress = reinterpret_cast<j_decompress_ptr>(cinfo);
  if (decompress->input_scan_number <= kMaxScans) return;
  auto* exit = reinterpret_cast<JpegErrors*>(cinfo->err);
  std::snprintf(exit->message, sizeof exit->message, "more than %d scans", kMaxScans);
  std::longjmp(exit->jump, 1);
}

}  // namespace

struct JpegDecoder::State {
  jpeg_decompress_struct cinfo;
  JpegErrors error;
  jpeg_progress_mgr progress;
  std::vector<std::uint8_t> row;
  BaselineJpeg baseline;

  bool Start(const JpegPiece& piece);
  bool IsSubsampled() const;
  void ReadRows(const PixelWindow& window, std::uint8_t* out, std::size_t stride);
  void Finish();
};

JpegDecoder::JpegDecoder() : state_(std::make_unique<State>()) {
  State& s = *state_;
  s.cinfo.err = s.error.Open();
  s.error.base.emit_message = OnMessage;
  // Fails only when out of memory or built against another libjpeg.
  if (setjmp(s.error.jump) != 0) CheckFailed(__FILE__, __LINE__, "jpeg_create_decompress");
  jpeg_create_decompress(&s.cinfo);
  s.progress.progress_monitor = OnProgress;
  s.cinfo.progress = &s.progress;
}

JpegDecoder::~JpegDecoder() { jpeg_destroy_decompress(&state_->cinfo); }

/// Decodes up to the first row. False, with a message, when the image does not match its container.
bool JpegDecoder::State::Start(const JpegPiece& piece) {
  if (!piece.tables.empty()) {
    jpeg_mem_src(&cinfo, reinterpret_cast<const unsigned char*>(piece.tables.data()),
                 piece.tables.size());
    if (jpeg_read_header(&cinfo, FALSE) != JPEG_HEADER_TABLES_ONLY) {
      std::snprintf(error.message, sizeof error.message, "the JPEG tables hold an image");
      return false;
    }
  }
  jpeg_mem_src(&cinfo, reinterpret_cast<const unsigned char*>(piece.bytes.data()),
               piece.bytes.size());
  jpeg_read_header(&cinfo, TRUE);
  if (cinfo.image_width != static_cast<JDIMENSION>(piece.width) ||
      cinfo.image_height < static_cast<JDIMENSION>(piece.height) ||
      cinfo.image_height > static_cast<JDIMENSION>(piece.height_max) ||
      cinfo.num_components != piece.components) {
    std::snprintf(error.message, sizeof error.message,
                  "%u x %u pixels of %d components where the file states %d x %d of %d",
                  cinfo.image_width, cinfo.image_height, cinfo.num_components, piece.width,
                  piece.height, piece.components);
    return false;
  }
  if (piece.components == 3) {
    cinfo.jpeg_color_space = piece.is_ycbcr ? JCS_YCbCr : JCS_RGB;
    cinfo.out_color_space = JCS_RGB;
  } else {
    cinfo.jpeg_color_space = cinfo.out_color_space = JCS_GRAYSCALE;
  }
  jpeg_start_decompress(&cinfo);
  return true;
}

bool JpegDecoder::State::IsSubsampled() const {
  bool is_subsampled = false;
  for (int i = 0; i < cinfo.num_components; ++i) {
    is_subsampled |= cinfo.comp_info[i].h_samp_factor != cinfo.max_h_samp_factor ||
                     cinfo.comp_info[i].v_samp_factor != cinfo.max_v_samp_factor;
  }
  return is_subsampled;
}

void JpegDecoder::State::ReadRows(const PixelWindow& window, std::uint8_t* out,
                                  std::size_t stride) {
  // Upsampling looks at the next sample and repeats the last one of a row, at a cut, too: the
  // pixels that this changes are decoded beside the window and thrown away. Images of several
  // passes are decoded whole anyway.
  const int margin = IsSubsampled() ? kCutMargin : 0;
  const bool is_whole = jpeg_has_multiple_scans(&cinfo) != 0;
  auto first = static_cast<JDIMENSION>(is_whole ? 0 : std::max(0, window.x - margin));
  JDIMENSION width = cinfo.output_width - first;
  if (!is_whole) {
    const auto end = static_cast<JDIMENSION>(window.x + window.width + margin);
    width = std::min(end, cinfo.output_width) - first;
    jpeg_crop_scanline(&cinfo, &first, &width);
  }
  const auto pixel = static_cast<std::size_t>(cinfo.output_components);
  const std::size_t skip = (static_cast<std::size_t>(window.x) - first) * pixel;
  const std::size_t take = static_cast<std::size_t>(window.width) * pixel;
  const bool is_direct = skip == 0 && take == width * pixel;
  if (row.size() < width * pixel + 1) row.resize(width * pixel + 1);
  JDIMENSION before = static_cast<JDIMENSION>(window.y);
  if (before > 0 && !is_whole) before -= jpeg_skip_scanlines(&cinfo, before);
  // An odd address: libjpeg writes aligned vectors past the caches, and the copy would wait for
  // them.
  JSAMPROW scratch = row.data() + 1;
  while (before > 0) before -= jpeg_read_scanlines(&cinfo, &scratch, 1);
  for (int y = 0; y < window.height; ++y, out += stride) {
    JSAMPROW target = is_direct ? out : scratch;
    jpeg_read_scanlines(&cinfo, &target, 1);
    if (!is_direct) std::memcpy(out, scratch + skip, take);
  }
}

/// Skips the rest of the image up to its end marker: damage shows most often as codes that end too
/// early or too late.
void JpegDecoder::State::Finish() {
  if (const JDIMENSION left = cinfo.output_height - cinfo.output_scanline; left > 0) {
    // Skipping all of them would leave the codes unread.
    if (left > 1) jpeg_skip_scanlines(&cinfo, left - 1);
    JSAMPROW scratch = row.data();
    jpeg_read_scanlines(&cinfo, &scratch, 1);
  }
  jpeg_finish_decompress(&cinfo);
}

Status JpegDecoder::Decode(const JpegPiece& piece, const PixelWindow& window, std::uint8_t* out,
                           std::size_t stride) {
  State& s = *state_;
  if (s.baseline.Decode(piece, window, out, stride)) return absl::OkStatus();
  if (setjmp(s.error.jump) != 0) {
    jpeg_abort_decompress(&s.cinfo);
    return DataLoss("jpeg: ", s.error.message);
  }
  // libjpeg jumps out of these; nothing with a destructor lives in them.
  const bool is_good = s.Start(piece);
  if (is_good) s.ReadRows(window, out, stride);
  if (is_good) s.Finish();
  jpeg_abort_decompress(&s.cinfo);
  if (!is_good) return DataLoss("jpeg: ", s.error.message);
  return absl::OkStatus();
}

}  // namespace patchbay::tiles
