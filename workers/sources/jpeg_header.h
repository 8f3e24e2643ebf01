// The header of a JPEG file, which has no container to state its facts.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "runtime/core/status.h"

namespace patchbay::workers {

struct JpegHeader {
  std::int64_t height = 0, width = 0;
  int components = 0;     ///< 1 or 3
  bool is_ycbcr = false;  ///< 3 components: by JFIF's word, then Adobe's, then names R, G, B
};

/// DataLoss for a damaged header. Unimplemented for other than 8 bits and 1 or 3 components, and
/// for a picture that its EXIF orientation turns or mirrors.
StatusOr<JpegHeader> ReadJpegHeader(std::span<const std::byte> bytes);

}  // namespace patchbay::workers
