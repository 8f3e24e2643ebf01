// JPEG 2000 tiles as Aperio stores them: raw codestreams, through OpenJPEG.
#pragma once

#include <cstdint>
#include <span>

#include "runtime/base/status.h"

namespace patchbay::workers {

/// Decodes a raw codestream of 3 unsigned 8-bit components, `width` x `height`, into interleaved
/// RGB rows without gaps. With `is_ycbcr` (33003) the components are YCbCr, the chroma ones
/// possibly at half width or height (each sample is repeated), and are converted here; otherwise
/// (33005) the codestream holds RGB. DataLoss when it is damaged, cut short or not as stated.
/// Thread-safe.
Status DecodeJpeg2000(std::span<const std::byte> bytes, int width, int height, bool is_ycbcr,
                      std::uint8_t* rgb);

}  // namespace patchbay::workers
