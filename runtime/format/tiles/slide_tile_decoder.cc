#include "runtime/format/tiles/slide_tile_decoder.h"

#include <cstring>

#include "runtime/format/tiles/jpeg2000_decoder.h"

namespace patchbay::tiles {

Status SlideTileDecoder::Decode(const TileFormat& format, const Tile& tile,
                                const PixelWindow& window, std::uint8_t* out, std::size_t stride) {
  if (format.codec == TileCodec::kJpeg) {
    return jpeg_.Decode({format.jpeg_tables, tile.bytes, tile.width, tile.height, tile.height_max,
                         tile.components, format.is_ycbcr},
                        window, out, stride);
  }
  const std::size_t row_bytes = std::size_t{3} * static_cast<std::size_t>(window.width);
  const auto rows = static_cast<std::size_t>(window.height);
  if (rows_.size() < rows * row_bytes) rows_.resize(rows * row_bytes);
  PB_RETURN_IF_ERROR(
      DecodeJpeg2000({tile.bytes, tile.width, tile.height, format.is_ycbcr}, window, rows_.data()));
  for (std::size_t y = 0; y < rows; ++y) {
    std::memcpy(out + y * stride, rows_.data() + y * row_bytes, row_bytes);
  }
  return absl::OkStatus();
}

}  // namespace patchbay::tiles
