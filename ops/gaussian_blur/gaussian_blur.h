// gaussian_blur: the weights of a patch. Rows first, then columns, each a sum from the lowest place
// to the highest; the patch is mirrored about its outer pixels.
#pragma once

#include <array>
#include <cstdint>

#include "ops/gaussian_blur/gaussian_blur_math.h"
#include "runtime/core/random.h"
#include "runtime/model/ops/gaussian_blur.h"

namespace patchbay::ops {

struct PatchBlur {
  int radius = 0;  ///< 0: the patch stays as it is
  std::array<float, 2 * kMaxBlurRadius + 1> weight{};
};

/// Word 0 of the key's first block: whether; word 1: sigma.
PatchBlur DrawBlur(const plan::GaussianBlurOptions& options, const DrawKey& key);
/// exp(-k^2 / (2 sigma^2)) for k within ceil(3 sigma), of sum 1.
PatchBlur BlurOf(double sigma);

}  // namespace patchbay::ops
