// Facts about compressed tiles that a slide's file or a store's metadata states and that the tiles
// themselves do not.
#pragma once

#include <cstdint>
#include <string>

namespace patchbay::tiles {

/// A part of an image, in its pixels.
struct PixelWindow {
  int y = 0, x = 0, height = 0, width = 0;
};

enum class TileCodec : std::uint8_t { kJpeg, kJpeg2000 };

/// How the tiles of a level are compressed: of 8 bits, 1 or 3 interleaved channels, 0 black.
struct TileFormat {
  TileCodec codec = TileCodec::kJpeg;
  bool is_ycbcr = false;    ///< 3 components hold YCbCr, else RGB
  std::string jpeg_tables;  ///< an abbreviated stream of tables, or empty

  bool operator==(const TileFormat&) const = default;
};

}  // namespace patchbay::tiles
