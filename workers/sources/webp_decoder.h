// WebP tiles of TIFF, through libwebp.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "runtime/core/status.h"

namespace patchbay::workers {

/// Writes the pixels of a still WebP image, lossy or lossless, as interleaved RGB rows without
/// gaps, and returns how many rows it has: `rows_min` or `rows`, since the last strip of a TIFF may
/// be stored with its own rows or with those of a whole strip. DataLoss for an image of another
/// size, with transparency, that is damaged or cut short, and for bytes other than padding behind
/// it. Thread-safe.
StatusOr<int> DecodeWebp(std::span<const std::byte> bytes, int width, int rows_min, int rows,
                         std::span<std::uint8_t> rgb);

}  // namespace patchbay::workers
