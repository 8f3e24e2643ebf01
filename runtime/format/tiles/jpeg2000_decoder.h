// JPEG 2000 tiles as Aperio stores them: raw codestreams, through OpenJPEG.
#pragma once

#include <cstdint>
#include <span>

#include "runtime/core/status.h"
#include "runtime/format/tiles/tile_format.h"

namespace patchbay::tiles {

/// A raw codestream of 3 unsigned 8-bit components, and the container's facts about it.
struct Jpeg2000Piece {
  std::span<const std::byte> bytes;
  int width = 0, height = 0;
  /// 33003: the components are YCbCr, the chroma ones possibly at half width or height, each sample
  /// then repeated. Otherwise (33005) they are RGB.
  bool is_ycbcr = false;
};

/// Writes the pixels of `window` as interleaved RGB rows without gaps: the same bytes as decoding
/// the whole codestream and cutting. A codestream of one tile, as slides have them, is read to its
/// end: codes outside the window are not decoded, but the same damage shows. DataLoss when it is
/// damaged, cut short or not as stated. Thread-safe.
Status DecodeJpeg2000(const Jpeg2000Piece& piece, const PixelWindow& window, std::uint8_t* rgb);

/// One grey codestream of up to 16 bits, as DICOM carries it.
struct GreyJpeg2000 {
  std::int64_t rows = 0, columns = 0;
  std::span<std::int32_t> values;  ///< rows x columns, written by decoding
  int bits_max = 16;               ///< bits of a sample
  bool is_signed = false;          ///< the codestream's; set by decoding
  bool is_reversible = false;      ///< after decoding: its transformation is lossless
};

/// Decodes into `out`, with the same checks. Values keep the codestream's sign.
Status DecodeGreyJpeg2000(std::span<const std::byte> bytes, GreyJpeg2000& out);

}  // namespace patchbay::tiles
