// The program of one patch between its gather and its slot: typed steps with what it drew, in the
// order in which they are applied, over (z, y, x) and channels; images have a depth of 1. A part of
// chain.
#pragma once

#include <utility>
#include <variant>
#include <vector>

#include "ops/chain/point_steps.h"
#include "ops/gaussian_blur/gaussian_blur.h"
#include "runtime/core/extent.h"

namespace patchbay::ops {

/// A colour jitter whose first step is about the mean grey of the slice.
struct MeanJitterStep {
  JitterStep jitter;
};

struct BlurStep {
  PatchBlur blur;
  bool along[3] = {};  ///< which of z, y and x; never none
};

/// About the mean of the patch, a channel at a time.
struct ContrastStep {
  float factor = 1;
};

/// Down to `size` by the nearest voxel, up again between voxels.
struct CoarseStep {
  Extent size;
};

struct GammaStep {
  double exponent = 1;
  bool retain_stats = false, invert = false;
};

/// A reduction or a neighbourhood: the patch is kept in scratch.
struct WholeStep {
  std::variant<MeanJitterStep, BlurStep, ContrastStep, CoarseStep, GammaStep> step;
  int slot = 0;  ///< its place among those that patches of the chain may have
};

/// Point-wise steps that are neighbours are fused, a row of the patch running through all.
using PatchStep = std::variant<PointStep, WholeStep>;

}  // namespace patchbay::ops
