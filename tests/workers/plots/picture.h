// A PNG file as pixels, for tests of drawings.
#pragma once

#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include <cairo.h>
#include <gtest/gtest.h>

#include "workers/plots/drawing.h"

namespace patchbay::workers {

struct DrawnPicture {
  int width = 0, height = 0;
  std::vector<std::uint8_t> pixels;  ///< red, green, blue

  bool IsAt(int x, int y, Color color) const {
    const std::uint8_t* pixel = &pixels[static_cast<std::size_t>((y * width + x) * 3)];
    return pixel[0] == color.red && pixel[1] == color.green && pixel[2] == color.blue;
  }
  int RedAt(int x, int y) const { return pixels[static_cast<std::size_t>((y * width + x) * 3)]; }
  int Count(Color color) const {
    int count = 0;
    for (int y = 0; y < height; ++y) {
      for (int x = 0; x < width; ++x) count += IsAt(x, y, color) ? 1 : 0;
    }
    return count;
  }
  /// The column with the longest upright line of that colour.
  int ColumnOf(Color color) const {
    int best = -1, longest = 0;
    for (int x = 0; x < width; ++x) {
      int count = 0;
      for (int y = 0; y < height; ++y) count += IsAt(x, y, color) ? 1 : 0;
      if (count > longest) {
        longest = count;
        best = x;
      }
    }
    return best;
  }
  /// How much was painted in black on white: 1 = one whole pixel.
  double Ink() const {
    double ink = 0;
    for (std::size_t i = 0; i < pixels.size(); i += 3) ink += (255 - pixels[i]) / 255.0;
    return ink;
  }
};

inline cairo_status_t TakeBytes(void* from, unsigned char* to, unsigned int size) {
  auto* bytes = static_cast<std::string_view*>(from);
  if (bytes->size() < size) return CAIRO_STATUS_READ_ERROR;
  std::memcpy(to, bytes->data(), size);
  bytes->remove_prefix(size);
  return CAIRO_STATUS_SUCCESS;
}

inline DrawnPicture ReadPicture(std::string_view png) {
  DrawnPicture picture;
  cairo_surface_t* surface = cairo_image_surface_create_from_png_stream(&TakeBytes, &png);
  EXPECT_EQ(cairo_surface_status(surface), CAIRO_STATUS_SUCCESS);
  EXPECT_EQ(cairo_image_surface_get_format(surface), CAIRO_FORMAT_RGB24);
  picture.width = cairo_image_surface_get_width(surface);
  picture.height = cairo_image_surface_get_height(surface);
  picture.pixels.resize(static_cast<std::size_t>(picture.width * picture.height * 3));
  std::uint8_t* to = picture.pixels.data();
  for (int y = 0; y < picture.height; ++y) {
    const unsigned char* row =
        cairo_image_surface_get_data(surface) + y * cairo_image_surface_get_stride(surface);
    for (int x = 0; x < picture.width; ++x) {
      std::uint32_t pixel = 0;
      std::memcpy(&pixel, row + 4 * x, sizeof(pixel));
      *to++ = static_cast<std::uint8_t>(pixel >> 16);
      *to++ = static_cast<std::uint8_t>(pixel >> 8);
      *to++ = static_cast<std::uint8_t>(pixel);
    }
  }
  cairo_surface_destroy(surface);
  return picture;
}

inline DrawnPicture PictureOf(const Drawing& drawing) {
  const auto png = drawing.Png();
  EXPECT_TRUE(png.ok()) << png.status();
  return png.ok() ? ReadPicture(*png) : DrawnPicture();
}

}  // namespace patchbay::workers
