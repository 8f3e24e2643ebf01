// Colours of pens and markers on slides, which no mixture of hematoxylin and eosin has.
#pragma once

#include <algorithm>

namespace patchbay::ops {

/// Whether red, green and blue, 0 to 255, are the ink of a green, blue or red pen.
constexpr bool IsPen(double red, double green, double blue) {
  const bool is_green = green >= 90 && green - red >= 40 && blue <= green + 20;
  const bool is_blue = blue >= 120 && green - red >= 30 && blue - green >= 70;
  const bool is_red = red >= 150 && std::max(green, blue) <= 60;
  return is_green || is_blue || is_red;
}

/// Black or grey: ink, or dark nuclei. Area tells them apart, colour does not.
constexpr bool IsBlackInk(double red, double green, double blue) {
  const double most = std::max({red, green, blue});
  return most <= 60 && most - std::min({red, green, blue}) <= 15;
}

}  // namespace patchbay::ops
