// JPEG tiles, in part or whole: by baseline_jpeg.h, and through libjpeg-turbo for all other forms.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string_view>

#include "runtime/core/status.h"
#include "runtime/format/tiles/tile_format.h"

namespace patchbay::tiles {

/// One JPEG image, and the container's facts about it.
struct JpegPiece {
  std::string_view tables;           ///< an abbreviated stream of tables, or empty
  std::span<const std::byte> bytes;  ///< the image
  int width = 0, height = 0;         ///< least accepted
  int height_max = 0;                ///< the last strip of an image may be stored with more rows
  int components = 3;                ///< 3 or 1
  bool is_ycbcr = false;  ///< the container's word on 3 components; JPEG itself often has none
};

/// Decoders, reused from tile to tile. One thread at a time.
class JpegDecoder {
 public:
  JpegDecoder();
  ~JpegDecoder();
  JpegDecoder(const JpegDecoder&) = delete;
  JpegDecoder& operator=(const JpegDecoder&) = delete;

  /// Writes the pixels of `window` to `out`, `stride` bytes from row to row, samples interleaved:
  /// the same bytes as decoding the whole image and cutting. The codes are always read to the end
  /// marker. DataLoss when libjpeg calls the image corrupt (its warnings about missing, bad or
  /// surplus data are errors here) or it differs from what `piece` states.
  Status Decode(const JpegPiece& piece, const PixelWindow& window, std::uint8_t* out,
                std::size_t stride);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace patchbay::tiles
