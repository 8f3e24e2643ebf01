// Neighbourhoods of small integer images: median, closing, components. A part of tissue_mask.
#pragma once

#include <cstdint>
#include <vector>

namespace patchbay::ops {

/// A row-major image of bytes.
struct ByteImage {
  std::int64_t height = 0, width = 0;
  std::vector<std::uint8_t> pixels;

  std::uint8_t* Row(std::int64_t y) { return pixels.data() + y * width; }
  const std::uint8_t* Row(std::int64_t y) const { return pixels.data() + y * width; }
};

/// The middle value of the k x k pixels around each, k odd, 1 to 15; beyond the edge the edge's
/// pixel repeats. Equal to OpenCV's medianBlur.
ByteImage MedianOf(const ByteImage& image, int k);

/// Closes zeros between ones: dilation, then erosion, with a square of side 2 radius + 1. Pixels
/// beyond the edge are ignored. `mask` holds 0 and 1.
void CloseMask(std::int64_t radius, ByteImage& mask);

/// Turns zeros within `radius` of a one, along rows and columns, to 1.
void GrowMask(std::int64_t radius, ByteImage& mask);

/// Turns components of ones with fewer than `min_pixels` pixels to 0; 8 neighbours.
void DropSmallComponents(std::int64_t min_pixels, ByteImage& mask);

/// Turns components of zeros with at most `max_pixels` pixels that do not touch the edge to 1; 4
/// neighbours.
void FillSmallHoles(std::int64_t max_pixels, ByteImage& mask);

}  // namespace patchbay::ops
