// hed_jitter: the linear map of optical densities that a patch draws.
#pragma once

#include "ops/colour/optical_density.h"
#include "runtime/core/random.h"
#include "runtime/model/ops/hed_jitter.h"

namespace patchbay::ops {

/// Word 0 of the first block: whether; words 1 to 3 the factors of haematoxylin, eosin and DAB;
/// words 0 to 2 of the second what they are raised by.
OdStep DrawHedJitter(const plan::HedJitterOptions& options, const DrawKey& key);

}  // namespace patchbay::ops
