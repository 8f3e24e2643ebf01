#include "runtime/format/tiles/jpeg_decoder.h"

#include <algorithm>
#include <array>
#include <csetjmp>
#include <cstdio>
#include <cstring>
#include <vector>

#include <immintrin.h>
#include <jpeglib.h>
// After jpeglib.h, which it needs.
#include <jerror.h>

#include "runtime/core/strings.h"
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

constexpr int kLanes = 16;

/// For each of the 16 bytes of part `part` of 16 interleaved pixels, which pixel of plane `c` it is
/// of; the high bit, which a shuffle turns to 0, where it is of another plane.
constexpr std::array<std::uint8_t, kLanes> PlacesOf(int c, int part) {
  std::array<std::uint8_t, kLanes> places{};
  for (int i = 0; i < kLanes; ++i) {
    const int at = part * kLanes + i;
    places[static_cast<std::size_t>(i)] =
        at % 3 == c ? static_cast<std::uint8_t>(at / 3) : std::uint8_t{0x80};
  }
  return places;
}
constexpr std::array<std::uint8_t, kLanes> kPlaces[3][3] = {
    {PlacesOf(0, 0), PlacesOf(0, 1), PlacesOf(0, 2)},
    {PlacesOf(1, 0), PlacesOf(1, 1), PlacesOf(1, 2)},
    {PlacesOf(2, 0), PlacesOf(2, 1), PlacesOf(2, 2)}};

inline __m128i Load(const std::uint8_t* at) {
  return _mm_loadu_si128(reinterpret_cast<const __m128i*>(at));
}

/// out[3 i], out[3 i + 1], out[3 i + 2] = first[i], second[i], third[i].
void InterleaveRow(const std::uint8_t* first, const std::uint8_t* second, const std::uint8_t* third,
                   std::int64_t pixels, std::uint8_t* out) {
  std::int64_t x = 0;
  for (; x + kLanes <= pixels; x += kLanes) {
    const __m128i planes[3] = {Load(first + x), Load(second + x), Load(third + x)};
    for (int part = 0; part < 3; ++part) {
      __m128i bytes = _mm_shuffle_epi8(planes[0], Load(kPlaces[0][part].data()));
      for (int c = 1; c < 3; ++c) {
        bytes = _mm_or_si128(bytes, _mm_shuffle_epi8(planes[c], Load(kPlaces[c][part].data())));
      }
      _mm_storeu_si128(reinterpret_cast<__m128i*>(out + 3 * x + part * kLanes), bytes);
    }
  }
  for (; x < pixels; ++x) {
    out[3 * x] = first[x];
    out[3 * x + 1] = second[x];
    out[3 * x + 2] = third[x];
  }
}

}  // namespace

struct JpegDecoder::State {
  jpeg_decompress_struct cinfo;
  JpegErrors error;
  jpeg_progress_mgr progress;
  std::vector<std::uint8_t> row;

  bool Start(const JpegPiece& piece, const PixelWindow& window);
  bool IsSubsampled() const;
  bool HasPlainPlanes(const PixelWindow& window) const;
  void ReadPlanes(const PixelWindow& window, std::uint8_t* out, std::size_t stride);
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
bool JpegDecoder::State::Start(const JpegPiece& piece, const PixelWindow& window) {
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
  cinfo.raw_data_out = HasPlainPlanes(window) ? TRUE : FALSE;
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

/// Whether the stored planes can be used unchanged: libjpeg interleaves them byte by byte, which
/// takes a sixth of its time.
bool JpegDecoder::State::HasPlainPlanes(const PixelWindow& window) const {
  return cinfo.num_components == 3 && cinfo.jpeg_color_space == JCS_RGB &&
         cinfo.max_h_samp_factor == 1 && cinfo.max_v_samp_factor == 1 && window.x == 0 &&
         window.y == 0 && window.width == static_cast<int>(cinfo.image_width) &&
         window.height <= static_cast<int>(cinfo.image_height);
}

void JpegDecoder::State::ReadPlanes(const PixelWindow& window, std::uint8_t* out,
                                    std::size_t stride) {
  const auto width = (std::size_t{cinfo.output_width} + DCTSIZE - 1) / DCTSIZE * DCTSIZE;
  if (row.size() < 3 * DCTSIZE * width) row.resize(3 * DCTSIZE * width);
  JSAMPROW rows[3][DCTSIZE];
  for (std::size_t i = 0; i < 3 * DCTSIZE; ++i)
    rows[i / DCTSIZE][i % DCTSIZE] = row.data() + i * width;
  JSAMPARRAY planes[3] = {rows[0], rows[1], rows[2]};
  for (int y = 0; y < static_cast<int>(cinfo.output_height); y += DCTSIZE) {
    jpeg_read_raw_data(&cinfo, planes, DCTSIZE);
    for (int i = 0; i < DCTSIZE && y + i < window.height; ++i, out += stride) {
      InterleaveRow(rows[0][i], rows[1][i], rows[2][i], window.width, out);
    }
  }
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
  if (const JDIMENSION left = cinfo.output_height - cinfo.output_scanline;
      cinfo.raw_data_out == FALSE && left > 0) {
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
  if (setjmp(s.error.jump) != 0) {
    jpeg_abort_decompress(&s.cinfo);
    return DataLoss("jpeg: ", s.error.message);
  }
  // libjpeg jumps out of these; nothing with a destructor lives in them.
  const bool is_good = s.Start(piece, window);
  if (is_good && s.cinfo.raw_data_out != FALSE) s.ReadPlanes(window, out, stride);
  if (is_good && s.cinfo.raw_data_out == FALSE) s.ReadRows(window, out, stride);
  if (is_good) s.Finish();
  jpeg_abort_decompress(&s.cinfo);
  if (!is_good) return DataLoss("jpeg: ", s.error.message);
  return absl::OkStatus();
}

}  // namespace patchbay::tiles
