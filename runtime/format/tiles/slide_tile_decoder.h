// Tiles of every format to pixels.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "runtime/core/status.h"
#include "runtime/format/tiles/jpeg_decoder.h"
#include "runtime/format/tiles/tile_format.h"

namespace patchbay::tiles {

/// One tile as it is stored, and the container's word on its shape.
struct Tile {
  std::span<const std::byte> bytes;
  int width = 0, height = 0;  ///< least accepted
  int height_max = 0;         ///< the last strip of an image may be stored with more rows
  int components = 3;         ///< 3 or 1
};

/// Decoders and memory, reused from tile to tile. One thread at a time.
class SlideTileDecoder {
 public:
  /// Writes the pixels of `window` to `out`, `stride` bytes from row to row, samples interleaved:
  /// the same bytes as decoding the whole tile and cutting. DataLoss when the tile is damaged or
  /// not as stated.
  Status Decode(const TileFormat& format, const Tile& tile, const PixelWindow& window,
                std::uint8_t* out, std::size_t stride);

 private:
  JpegDecoder jpeg_;
  std::vector<std::uint8_t> rows_;
};

}  // namespace patchbay::tiles
