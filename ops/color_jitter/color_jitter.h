// color_jitter: what a patch draws.
#pragma once

#include <optional>

#include "ops/color_jitter/color_steps.h"
#include "runtime/core/random.h"
#include "runtime/model/ops/color_jitter.h"

namespace patchbay::ops {

/// Word 0 of the first block: whether; word 1: which of the 24 orders; the second block:
/// brightness, contrast, saturation, hue. Nothing when the patch stays as it is.
std::optional<ColorJitter> DrawColorJitter(const plan::ColorJitterOptions& options,
                                           const DrawKey& key);

}  // namespace patchbay::ops
