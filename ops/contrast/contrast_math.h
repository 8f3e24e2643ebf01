// contrast: the line of a patch. Host and device.
#pragma once

#include "ops/intensity/patch_stats.h"
#include "ops/steps/step_forms.h"
#include "runtime/core/channels.h"

namespace patchbay::ops {

/// About the mean of the patch, a channel at a time.
struct ContrastStep {
  static constexpr WholeForm kForm = WholeForm::kLine;
  float factor[kMaxChannels] = {};

  /// Within the least and the largest value.
  PB_HOST_DEVICE LineWithin LineOf(const PatchStats& stats, int c) const {
    const float own = factor[c];
    return {own, static_cast<float>(stats.mean * (1 - double{own})), stats.least, stats.most};
  }
};

}  // namespace patchbay::ops
