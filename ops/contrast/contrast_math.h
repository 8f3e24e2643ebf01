// contrast: the line of a patch. Host and device.
#pragma once

#include "ops/intensity/patch_stats.h"
#include "ops/steps/step_forms.h"

namespace patchbay::ops {

/// About the mean of the patch, a channel at a time.
struct ContrastStep {
  static constexpr WholeForm kForm = WholeForm::kLine;
  float factor = 1;

  /// Within the least and the largest value.
  PB_HOST_DEVICE LineWithin LineOf(const PatchStats& stats) const {
    return {factor, static_cast<float>(stats.mean * (1 - double{factor})), stats.least, stats.most};
  }
};

}  // namespace patchbay::ops
