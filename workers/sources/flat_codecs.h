// The TIFF compressions that give back samples as they are: none, LZW, Deflate, Zstd, PackBits, and
// the horizontal predictor.
#pragma once

#include <cstdint>
#include <span>

#include "runtime/base/status.h"
#include "workers/sources/tiff_index.h"

namespace patchbay::workers {

/// Fills `out` whole; what the bytes hold beyond it is not looked at. DataLoss when they are
/// corrupt or hold less.
Status DecodeFlat(TiffCompression compression, std::span<const std::byte> bytes,
                  std::span<std::uint8_t> out);

/// True for the compressions DecodeFlat knows.
bool IsFlat(TiffCompression compression);

/// Undoes TIFF predictor 2 for 8-bit samples: each row of `row_bytes` holds differences to the
/// sample `step` before.
void UndoHorizontalPredictor(std::span<std::uint8_t> samples, std::size_t row_bytes,
                             std::size_t step);

}  // namespace patchbay::workers
