#include "runtime/format/tiles/jpeg2000_decoder.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <memory>
#include <string>

#include <openjpeg.h>

#include "runtime/core/strings.h"

namespace patchbay::tiles {
namespace {

struct MemoryReader {
  std::span<const std::byte> bytes;
  std::size_t at = 0;
};

OPJ_SIZE_T ReadMemory(void* out, OPJ_SIZE_T size, void* user) {
  auto* reader = static_cast<MemoryReader*>(user);
  const std::size_t n = std::min<std::size_t>(size, reader->bytes.size() - reader->at);
  if (n == 0) return static_cast<OPJ_SIZE_T>(-1);
  std::memcpy(out, reader->bytes.data() + reader->at, n);
  reader->at += n;
  return n;
}

OPJ_OFF_T SkipMemory(OPJ_OFF_T size, void* user) {
  auto* reader = static_cast<MemoryReader*>(user);
  if (size < 0) return -1;
  const std::size_t n =
      std::min<std::size_t>(static_cast<std::size_t>(size), reader->bytes.size() - reader->at);
  reader->at += n;
  return n == 0 ? -1 : static_cast<OPJ_OFF_T>(n);
}

OPJ_BOOL SeekMemory(OPJ_OFF_T offset, void* user) {
  auto* reader = static_cast<MemoryReader*>(user);
  if (offset < 0 || static_cast<std::size_t>(offset) > reader->bytes.size()) return OPJ_FALSE;
  reader->at = static_cast<std::size_t>(offset);
  return OPJ_TRUE;
}

/// Keeps the first line of an error message.
void KeepMessage(const char* text, void* user) {
  auto* message = static_cast<std::string*>(user);
  if (!message->empty()) return;
  *message = text;
  message->resize(std::min(message->size(), message->find('\n')));
}

/// OpenJPEG only warns about packets or code blocks with a wrong end, unknown markers and missing
/// data, and continues: every warning of its decoder can mean wrong pixels.
struct Complaints {
  std::string error, warning;
  const std::string& First() const { return error.empty() ? warning : error; }
};

using Stream = std::unique_ptr<opj_stream_t, decltype(&opj_stream_destroy)>;
using Codec = std::unique_ptr<opj_codec_t, decltype(&opj_destroy_codec)>;
using Image = std::unique_ptr<opj_image_t, decltype(&opj_image_destroy)>;

Status Corrupt(const std::string& cause) {
  return DataLoss("jpeg 2000: ", cause.empty() ? "damaged" : cause);
}

/// Checks the header against the slide's description, before any memory is spent on pixels.
Status CheckShape(const opj_image_t& image, int width, int height) {
  const auto w = static_cast<OPJ_UINT32>(width), h = static_cast<OPJ_UINT32>(height);
  if (image.x0 != 0 || image.y0 != 0 || image.x1 != w || image.y1 != h || image.numcomps != 3) {
    return Corrupt(StrCat(image.x1, " x ", image.y1, " pixels of ", image.numcomps,
                          " components where the file states ", width, " x ", height, " of 3"));
  }
  for (OPJ_UINT32 i = 0; i < 3; ++i) {
    const opj_image_comp_t& c = image.comps[i];
    const bool is_size_known = c.dx >= 1 && c.dy >= 1 && c.dx <= 2 && c.dy <= 2;
    if (c.prec != 8 || c.sgnd != 0 || !is_size_known || (i == 0 && (c.dx != 1 || c.dy != 1))) {
      return Corrupt(
          StrCat("component ", i, " of ", c.prec, " bits, subsampled ", c.dx, " x ", c.dy));
    }
  }
  return absl::OkStatus();
}

std::uint8_t Clamp(int v) { return static_cast<std::uint8_t>(std::clamp(v, 0, 255)); }

/// The integer YCbCr tables of the JPEG reference code, 16 fractional bits.
struct ColorTables {
  std::array<int, 256> red_cr, blue_cb, green_cr, green_cb;
  constexpr ColorTables() : red_cr(), blue_cb(), green_cr(), green_cb() {
    constexpr int kHalf = 1 << 15;
    for (int i = 0; i < 256; ++i) {
      const int x = i - 128;
      const auto k = static_cast<std::size_t>(i);
      red_cr[k] = (91881 * x + kHalf) >> 16;
      blue_cb[k] = (116130 * x + kHalf) >> 16;
      green_cr[k] = -46802 * x;
      green_cb[k] = -22554 * x + kHalf;
    }
  }
};
constexpr ColorTables kColor;

/// The samples that a component has under row `y` of the image, from column c.x0 of it on.
const OPJ_INT32* RowUnder(const opj_image_comp_t& c, OPJ_UINT32 y) {
  return c.data + static_cast<std::size_t>(std::min(y / c.dy - c.y0, c.h - 1)) * c.w;
}

void Interleave(const opj_image_t& image, const PixelWindow& window, bool is_ycbcr,
                std::uint8_t* rgb) {
  const opj_image_comp_t* c = image.comps;
  const auto left = static_cast<OPJ_UINT32>(window.x);
  const OPJ_UINT32 right = left + static_cast<OPJ_UINT32>(window.width);
  for (int i = 0; i < window.height; ++i) {
    const auto y = static_cast<OPJ_UINT32>(window.y + i);
    const OPJ_INT32* row[3] = {RowUnder(c[0], y), RowUnder(c[1], y), RowUnder(c[2], y)};
    for (OPJ_UINT32 x = left; x < right; ++x, rgb += 3) {
      const int v0 = row[0][x - c[0].x0];
      const int v1 = row[1][x / c[1].dx - c[1].x0];
      const int v2 = row[2][x / c[2].dx - c[2].x0];
      if (!is_ycbcr) {
        rgb[0] = Clamp(v0);
        rgb[1] = Clamp(v1);
        rgb[2] = Clamp(v2);
        continue;
      }
      const std::size_t cb = Clamp(v1), cr = Clamp(v2);
      rgb[0] = Clamp(v0 + kColor.red_cr[cr]);
      rgb[1] = Clamp(v0 + ((kColor.green_cb[cb] + kColor.green_cr[cr]) >> 16));
      rgb[2] = Clamp(v0 + kColor.blue_cb[cb]);
    }
  }
}

/// Decodes a codestream whose header `check` accepts, to its end; every complaint is an error.
template <typename Check>
StatusOr<Image> DecodeStream(std::span<const std::byte> bytes, const Check& check) {
  MemoryReader reader{bytes};
  Complaints complaints;
  const Stream stream(
      opj_stream_create(std::clamp<std::size_t>(bytes.size(), 1024, 1 << 20), OPJ_TRUE),
      &opj_stream_destroy);
  const Codec codec(opj_create_decompress(OPJ_CODEC_J2K), &opj_destroy_codec);
  if (stream == nullptr || codec == nullptr) return ResourceExhausted("jpeg 2000: no memory");
  opj_stream_set_user_data(stream.get(), &reader, nullptr);
  opj_stream_set_user_data_length(stream.get(), bytes.size());
  opj_stream_set_read_function(stream.get(), ReadMemory);
  opj_stream_set_skip_function(stream.get(), SkipMemory);
  opj_stream_set_seek_function(stream.get(), SeekMemory);
  opj_set_error_handler(codec.get(), KeepMessage, &complaints.error);
  opj_set_warning_handler(codec.get(), KeepMessage, &complaints.warning);
  opj_dparameters_t parameters;
  opj_set_default_decoder_parameters(&parameters);
  if (opj_setup_decoder(codec.get(), &parameters) == OPJ_FALSE) return Corrupt(complaints.First());
  opj_decoder_set_strict_mode(codec.get(), OPJ_TRUE);
  opj_image_t* header = nullptr;
  const bool has_header = opj_read_header(stream.get(), codec.get(), &header) != OPJ_FALSE;
  Image image(header, &opj_image_destroy);
  if (!has_header || image == nullptr) return Corrupt(complaints.First());
  PB_RETURN_IF_ERROR(check(*image, codec.get()));
  if (opj_decode(codec.get(), stream.get(), image.get()) == OPJ_FALSE ||
      opj_end_decompress(codec.get(), stream.get()) == OPJ_FALSE) {
    return Corrupt(complaints.First());
  }
  if (!complaints.warning.empty()) return Corrupt(complaints.warning);
  return image;
}

/// True when the main header declares a reversible wavelet.
bool IsReversible(opj_codec_t* codec) {
  opj_codestream_info_v2_t* info = opj_get_cstr_info(codec);
  const opj_tccp_info_t* component =
      info == nullptr ? nullptr : info->m_default_tile_info.tccp_info;
  const bool is_reversible = component != nullptr && component->qmfbid == 1;
  opj_destroy_cstr_info(&info);
  return is_reversible;
}

Status CheckGrey(const opj_image_t& image, const GreyJpeg2000& wanted) {
  const auto w = static_cast<OPJ_UINT32>(wanted.columns), h = static_cast<OPJ_UINT32>(wanted.rows);
  if (image.x0 != 0 || image.y0 != 0 || image.x1 != w || image.y1 != h || image.numcomps != 1 ||
      image.comps[0].dx != 1 || image.comps[0].dy != 1) {
    return Corrupt(StrCat(image.x1, " x ", image.y1, " pixels of ", image.numcomps,
                          " components where the file states ", w, " x ", h, " of 1"));
  }
  const OPJ_UINT32 bits = image.comps[0].prec;
  if (bits >= 1 && bits <= static_cast<OPJ_UINT32>(wanted.bits_max)) return absl::OkStatus();
  return Corrupt(StrCat("samples of ", bits, " bits where the file states ", wanted.bits_max));
}

}  // namespace

Status DecodeJpeg2000(const Jpeg2000Piece& piece, const PixelWindow& window, std::uint8_t* rgb) {
  // Even, so that the sample of a component at half size under the first pixel is in the area.
  const int left = window.x & ~1, top = window.y & ~1;
  const int right = window.x + window.width, bottom = window.y + window.height;
  const bool is_whole = left == 0 && top == 0 && right == piece.width && bottom == piece.height;
  PB_ASSIGN_OR_RETURN(const Image image,
                      DecodeStream(piece.bytes, [&](opj_image_t& header, opj_codec_t* codec) {
                        Status status = CheckShape(header, piece.width, piece.height);
                        if (status.ok() && !is_whole &&
                            !opj_set_decode_area(codec, &header, left, top, right, bottom)) {
                          status = Corrupt("its tiles do not cover it");
                        }
                        return status;
                      }));
  for (OPJ_UINT32 i = 0; i < 3; ++i) {
    const opj_image_comp_t& c = image->comps[i];
    const auto w = static_cast<OPJ_UINT32>(right - left), h = static_cast<OPJ_UINT32>(bottom - top);
    if (c.data == nullptr || c.w < (w + c.dx - 1) / c.dx || c.h < (h + c.dy - 1) / c.dy) {
      return Corrupt(StrCat("component ", i, " has ", c.w, " x ", c.h, " samples"));
    }
  }
  Interleave(*image, window, piece.is_ycbcr, rgb);
  return absl::OkStatus();
}

Status DecodeGreyJpeg2000(std::span<const std::byte> bytes, GreyJpeg2000& out) {
  PB_ASSIGN_OR_RETURN(const Image image,
                      DecodeStream(bytes, [&](const opj_image_t& header, opj_codec_t* codec) {
                        out.is_reversible = IsReversible(codec);
                        return CheckGrey(header, out);
                      }));
  const opj_image_comp_t& c = image->comps[0];
  if (c.data == nullptr || static_cast<std::size_t>(c.w) * c.h != out.values.size()) {
    return Corrupt(StrCat(c.w, " x ", c.h, " samples"));
  }
  out.is_signed = c.sgnd != 0;
  std::copy(c.data, c.data + out.values.size(), out.values.begin());
  return absl::OkStatus();
}

}  // namespace patchbay::tiles
