// JPEG 2000 tiles as Aperio stores them: raw codestreams, through OpenJPEG.
#pragma once

#include <cstdint>
#include <span>

#include "runtime/core/status.h"

namespace patchbay::workers {

/// Decodes a raw codestream of 3 unsigned 8-bit components, `width` x `height`, into interleaved
/// RGB rows without gaps. With `is_ycbcr` (33003) the components are YCbCr, the chroma ones
/// possibly at half width or height (each sample is repeated), and are converted here; otherwise
/// (33005) the codestream holds RGB. DataLoss when it is damaged, cut short or not as stated.
/// Thread-safe.
Status DecodeJpeg2000(std::span<const std::byte> bytes, int width, int height, bool is_ycbcr,
                      std::uint8_t* rgb);

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

}  // namespace patchbay::workers
