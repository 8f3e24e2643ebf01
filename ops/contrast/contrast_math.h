// contrast: the line of a patch. Host and device.
#pragma once

#include "ops/intensity/patch_stats.h"

namespace patchbay::ops {

/// A step of the chain: about the mean of the patch, a channel at a time.
struct ContrastStep {
  float factor = 1;
};

/// About the mean, within the least and the largest value.
PB_HOST_DEVICE inline LineWithin ContrastLine(const PatchStats& stats, float contrast) {
  const double factor = contrast;
  return {contrast, static_cast<float>(stats.mean * (1 - factor)), stats.least, stats.most};
}

}  // namespace patchbay::ops
