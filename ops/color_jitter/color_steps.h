// color_jitter of a patch, as plain values that kernels take too.
#pragma once

namespace patchbay::ops {

enum class ColorStep : int { kBrightness, kContrast, kSaturation, kHue };
inline constexpr int kColorSteps = 4;

struct ColorJitter {
  ColorStep order[kColorSteps] = {ColorStep::kBrightness, ColorStep::kContrast,
                                  ColorStep::kSaturation, ColorStep::kHue};
  float brightness = 1, contrast = 1, saturation = 1, hue = 0;
};

}  // namespace patchbay::ops
