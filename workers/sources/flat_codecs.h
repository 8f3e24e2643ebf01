// The lossless TIFF compressions: none, LZW, Deflate, Zstd, PackBits, and the horizontal predictor.
#pragma once

#include <cstdint>
#include <span>

#include "runtime/core/status.h"
#include "workers/sources/tiff_index.h"

namespace patchbay::workers {

/// Decodes a piece to its end, checksum included, into `out`. It must have `least` bytes of samples
/// or fill all of `out`: the last strip of an image may be stored with its own rows or with those
/// of a whole strip. DataLoss for fewer, more, damage that the format shows, and bytes other than
/// padding after the end.
Status DecodeFlat(TiffCompression compression, std::span<const std::byte> bytes,
                  std::span<std::uint8_t> out, std::size_t least);
inline Status DecodeFlat(TiffCompression compression, std::span<const std::byte> bytes,
                         std::span<std::uint8_t> out) {
  return DecodeFlat(compression, bytes, out, out.size());
}

/// True for the compressions DecodeFlat knows.
bool IsFlat(TiffCompression compression);

/// Undoes TIFF predictor 2 for samples of `sample_bytes` (1 or 2, in the machine's byte order):
/// each row of `row_bytes` holds differences to the sample `step` before.
void UndoHorizontalPredictor(std::span<std::uint8_t> samples, std::size_t row_bytes,
                             std::size_t step, std::size_t sample_bytes = 1);

/// Turns the bytes of every 16-bit sample round.
void SwapSamples(std::span<std::uint8_t> samples);

}  // namespace patchbay::workers
