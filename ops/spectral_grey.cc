// Interleaved colours to what spectral analyses.
#include "ops/spectral_frames.h"

namespace patchbay::ops {

void GreyOfRgb(const std::uint8_t* rgb, std::int64_t pixels, std::uint8_t* grey) {
  for (std::int64_t i = 0; i < pixels; ++i, rgb += 3) {
    grey[i] = static_cast<std::uint8_t>(
        (9798U * rgb[0] + 19235U * rgb[1] + 3735U * rgb[2] + 16384U) >> 15);
  }
}

void SplitRgb(const std::uint8_t* rgb, std::int64_t pixels, std::uint8_t* red, std::uint8_t* green,
              std::uint8_t* blue) {
  for (std::int64_t i = 0; i < pixels; ++i, rgb += 3) {
    red[i] = rgb[0];
    green[i] = rgb[1];
    blue[i] = rgb[2];
  }
}

}  // namespace patchbay::ops
