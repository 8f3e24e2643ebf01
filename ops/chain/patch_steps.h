// The program of one patch between its gather and its slot: typed steps with their draws, in the
// order in which they are applied, over (z, y, x) and channels; images have a depth of 1. A part of
// chain.
#pragma once

#include <variant>

#include "ops/chain/point_step.h"
#include "ops/color_jitter/color_steps.h"
#include "ops/contrast/contrast_math.h"
#include "ops/gamma/power_curve.h"
#include "ops/gaussian_blur/gaussian_blur.h"
#include "ops/low_resolution/low_resolution.h"

namespace patchbay::ops {

/// A reduction or a neighbourhood: the patch is kept in scratch.
struct WholeStep {
  std::variant<MeanJitterStep, BlurStep, ContrastStep, CoarseStep, GammaStep> step;
  int slot = 0;  ///< its index among the steps that patches of the chain may have
};

/// Point-wise steps that are neighbours are fused, a row of the patch running through all.
using PatchStep = std::variant<PointStep, WholeStep>;

}  // namespace patchbay::ops
