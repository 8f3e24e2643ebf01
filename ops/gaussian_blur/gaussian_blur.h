// gaussian_blur: a Gaussian filter of a width drawn for each patch. Rows first, then columns, each
// a sum from the lowest place to the highest; the patch is mirrored about its outer pixels.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "ops/draws/draws.h"
#include "ops/gaussian_blur/gaussian_blur_math.h"
#include "runtime/core/random.h"
#include "runtime/model/ops/op_options.h"
#include "runtime/model/ops/op_table.h"

namespace patchbay::ops {

inline constexpr double kMaxBlurSigma = 16;

struct GaussianBlurOptions {
  double p = kDefaultProbability;
  DrawRange sigma = {0.5, 1.0};  ///< px of the finished patch

  static constexpr plan::OpNumber kNumber{13};
  static std::vector<plan::Option<GaussianBlurOptions>> Table();
};

struct PatchBlur {
  int radius = 0;  ///< 0: the patch stays as it is
  std::array<float, 2 * kMaxBlurRadius + 1> weight{};
};

/// A step of the chain.
struct BlurStep {
  PatchBlur blur;
  bool along[3] = {};  ///< z, y and x; never none
};

/// Word 0 of the key's first block: whether; word 1: sigma.
PatchBlur DrawBlur(const GaussianBlurOptions& options, const DrawKey& key);
/// exp(-k^2 / (2 sigma^2)) for k within ceil(3 sigma), of sum 1.
PatchBlur BlurOf(double sigma);

}  // namespace patchbay::ops
