// gaussian_blur: a Gaussian filter of a width drawn for each patch. Rows first, then columns, each
// a sum from the lowest place to the highest; the patch is mirrored about its outer pixels.
#pragma once

#include <vector>

#include "ops/draws/draws.h"
#include "ops/geometry/blur.h"
#include "runtime/core/random.h"
#include "runtime/model/ops/op_options.h"
#include "runtime/model/ops/op_table.h"

namespace patchbay::ops {

struct GaussianBlurOptions {
  double p = kDefaultProbability;
  DrawRange sigma = {0.5, 1.0};  ///< px of the finished patch

  static constexpr plan::OpNumber kNumber{13};
  static std::vector<plan::Option<GaussianBlurOptions>> Table();
};

/// Word 0 of the key's first block: whether; word 1: sigma.
PatchBlur DrawBlur(const GaussianBlurOptions& options, const DrawKey& key);

}  // namespace patchbay::ops
