// gaussian_blur: which pixel stands for one beyond the patch. Host and device.
#pragma once

#include <cstdint>

#include "runtime/core/random.h"

namespace patchbay::ops {

inline constexpr int kMaxBlurRadius = 48;  ///< three times the largest sigma

/// The place of `at` in a row of `pixels`, mirrored about its ends as often as need be.
PB_HOST_DEVICE inline std::int64_t MirroredPlace(std::int64_t at, std::int64_t pixels) {
  if (at >= 0 && at < pixels) return at;
  if (pixels == 1) return 0;
  const std::int64_t period = 2 * (pixels - 1);
  at = ((at % period) + period) % period;
  return at < pixels ? at : period - at;
}

}  // namespace patchbay::ops
