// The weights of a Gaussian along one axis, mirrored about its outer pixels. Kernels include it as
// C++17.
#pragma once

#include <array>
#include <cstdint>

#include "runtime/core/random.h"

namespace patchbay::ops {

inline constexpr int kMaxBlurSigma = 16, kMaxBlurRadius = 3 * kMaxBlurSigma;

struct PatchBlur {
  int radius = 0;  ///< 0: the axis stays as it is
  std::array<float, 2 * kMaxBlurRadius + 1> weight{};
};

/// exp(-k^2 / (2 sigma^2)) for k within ceil(3 sigma), of sum 1; sigma at most kMaxBlurSigma.
PatchBlur BlurOf(double sigma);

/// The place of `at` in a row of `pixels`, mirrored about its ends as often as need be.
PB_HOST_DEVICE inline std::int64_t MirroredPlace(std::int64_t at, std::int64_t pixels) {
  if (at >= 0 && at < pixels) return at;
  if (pixels == 1) return 0;
  const std::int64_t period = 2 * (pixels - 1);
  at = ((at % period) + period) % period;
  return at < pixels ? at : period - at;
}

}  // namespace patchbay::ops
