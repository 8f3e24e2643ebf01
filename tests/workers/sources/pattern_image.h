// TIFF images with a value for every place, for tests of jobs.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <string>

#include "tests/workers/sources/crafted_tiff.h"

namespace patchbay::workers {

/// A value for every place and channel: structure of several scales, no two frames alike.
inline std::uint8_t PatternAt(std::int64_t y, std::int64_t x, int channel, std::uint32_t seed) {
  std::uint32_t noise = static_cast<std::uint32_t>(y) * 73856093u ^
                        static_cast<std::uint32_t>(x) * 19349663u ^
                        (seed + static_cast<std::uint32_t>(channel)) * 83492791u;
  noise = (noise ^ noise >> 13) * 0x85ebca6bu;
  const double wave = 60 * std::sin(0.05 * static_cast<double>(x + 3 * channel)) +
                      40 * std::cos(0.11 * static_cast<double>(y) + seed);
  return static_cast<std::uint8_t>(std::clamp(128 + wave + (noise >> 27), 0.0, 255.0));
}

/// An uncompressed tiled image; pixels by `value` (y, x, channel).
inline CraftedImage PatternImage(
    std::uint32_t width, std::uint32_t height, std::uint32_t tile, std::uint16_t samples,
    const std::function<std::uint8_t(std::int64_t, std::int64_t, int)>& value) {
  CraftedImage image;
  image.width = width;
  image.height = height;
  image.tile = tile;
  image.samples = samples;
  image.photometric = samples == 1 ? 1 : 2;
  const std::uint32_t columns = (width + tile - 1) / tile;
  for (std::size_t n = 0; n < PieceCount(image); ++n) {
    std::string piece;
    for (std::uint32_t y = 0; y < tile; ++y) {
      for (std::uint32_t x = 0; x < tile; ++x) {
        for (int c = 0; c < samples; ++c) {
          piece.push_back(
              static_cast<char>(value(static_cast<std::int64_t>(n / columns * tile + y),
                                      static_cast<std::int64_t>(n % columns * tile + x), c)));
        }
      }
    }
    image.pieces.push_back(std::move(piece));
  }
  return image;
}

inline CraftedImage PatternImage(std::uint32_t width, std::uint32_t height,
                                 std::uint32_t tile = 128, std::uint16_t samples = 3,
                                 std::uint32_t seed = 1) {
  return PatternImage(width, height, tile, samples, [seed](std::int64_t y, std::int64_t x, int c) {
    return PatternAt(y, x, c, seed);
  });
}

}  // namespace patchbay::workers
