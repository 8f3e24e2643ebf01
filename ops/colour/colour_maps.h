// What a patch draws of the colour ops, as plain values that kernels take too.
#pragma once

namespace patchbay::ops {

/// exp2(matrix log2(clip(v, lowest, highest)) + offset), at most `white`.
struct OdMap {
  float matrix[3][3] = {{1, 0, 0}, {0, 1, 0}, {0, 0, 1}};
  float offset[3] = {0, 0, 0};
  float lowest = 1, highest = 255;  ///< of an input value
  float white = 255;                ///< the largest output
};

enum class ColorStep : int { kBrightness, kContrast, kSaturation, kHue };
inline constexpr int kColorSteps = 4;

struct ColorJitter {
  ColorStep order[kColorSteps] = {ColorStep::kBrightness, ColorStep::kContrast,
                                  ColorStep::kSaturation, ColorStep::kHue};
  float brightness = 1, contrast = 1, saturation = 1, hue = 0;
};

}  // namespace patchbay::ops
