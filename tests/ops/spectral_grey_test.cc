#include <cstdint>
#include <vector>

#include <gtest/gtest.h>

#include "ops/colour/grey_math.h"
#include "ops/spectral/spectral_frames.h"

namespace patchbay::ops {
namespace {

std::vector<std::uint8_t> Colours(std::size_t pixels) {
  std::vector<std::uint8_t> rgb(3 * pixels);
  for (std::size_t i = 0; i < rgb.size(); ++i)
    rgb[i] = static_cast<std::uint8_t>(i * i * 31 + i / 7);
  return rgb;
}

TEST(SpectralGrey, EveryColourHasTheGreyOfTheFormula) {
  constexpr std::int64_t kRow = 256 * 256;
  std::vector<std::uint8_t> rgb(3 * kRow), grey(kRow);
  for (std::uint32_t red = 0; red < 256; ++red) {
    for (std::uint32_t i = 0; i < kRow; ++i) {
      rgb[3 * i] = static_cast<std::uint8_t>(red);
      rgb[3 * i + 1] = static_cast<std::uint8_t>(i >> 8);
      rgb[3 * i + 2] = static_cast<std::uint8_t>(i);
    }
    GreyOfRgb(rgb.data(), kRow, grey.data());
    for (std::uint32_t i = 0; i < kRow; ++i) ASSERT_EQ(grey[i], GreyOf(red, i >> 8, i & 255)) << i;
  }
}

TEST(SpectralGrey, RowsOfAnyLengthAreReadAndWrittenToTheirEndAndNoFurther) {
  constexpr std::uint8_t kUntouched = 77;
  for (std::size_t pixels = 0; pixels < 200; ++pixels) {
    const std::vector<std::uint8_t> rgb = Colours(pixels);
    std::vector<std::uint8_t> grey(pixels + 1, kUntouched), red = grey, green = grey, blue = grey;
    GreyOfRgb(rgb.data(), static_cast<std::int64_t>(pixels), grey.data());
    SplitRgb(rgb.data(), static_cast<std::int64_t>(pixels), red.data(), green.data(), blue.data());
    for (std::size_t i = 0; i < pixels; ++i) {
      ASSERT_EQ(grey[i], GreyOf(rgb[3 * i], rgb[3 * i + 1], rgb[3 * i + 2])) << pixels << " " << i;
      ASSERT_EQ(red[i], rgb[3 * i]) << pixels << " " << i;
      ASSERT_EQ(green[i], rgb[3 * i + 1]) << pixels << " " << i;
      ASSERT_EQ(blue[i], rgb[3 * i + 2]) << pixels << " " << i;
    }
    for (const auto* plane : {&grey, &red, &green, &blue}) {
      ASSERT_EQ(plane->back(), kUntouched) << pixels;
    }
  }
}

}  // namespace
}  // namespace patchbay::ops
