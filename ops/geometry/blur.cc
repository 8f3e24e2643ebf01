#include "ops/geometry/blur.h"

#include <cmath>

#include "ops/lanes/fixed_math.h"

namespace patchbay::ops {

PatchBlur BlurOf(double sigma) {
  constexpr double kLog2E = 1.4426950408889634;
  PatchBlur blur;
  if (!(sigma > 0)) return blur;
  blur.radius = static_cast<int>(std::ceil(3 * sigma));
  std::array<double, kMaxBlurRadius + 1> half{};
  double sum = 0;
  for (int k = 0; k <= blur.radius; ++k) {
    const double scaled = k / sigma, exponent = -0.5 * scaled * scaled * kLog2E;
    const double weight = exponent < -1000 ? 0 : FixedBinaryPower(exponent);
    half[static_cast<std::size_t>(k)] = weight;
    sum += k == 0 ? weight : 2 * weight;
  }
  for (int k = -blur.radius; k <= blur.radius; ++k) {
    blur.weight[static_cast<std::size_t>(k + blur.radius)] =
        static_cast<float>(half[static_cast<std::size_t>(std::abs(k))] / sum);
  }
  return blur;
}

}  // namespace patchbay::ops
