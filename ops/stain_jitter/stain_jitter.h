// stain_jitter: the linear map of optical densities that a patch draws.
#pragma once

#include "ops/colour/optical_density.h"
#include "runtime/core/random.h"
#include "runtime/model/ops/stain_fit.h"
#include "runtime/model/ops/stain_jitter.h"

namespace patchbay::ops {

/// Words 0 to 3 of the first block: whether, then the factors of haematoxylin and eosin; of the
/// second, what they are raised by. What is no stain stays.
OdStep DrawStainJitter(const plan::StainJitterOptions& options, const plan::MacenkoFit& basis,
                       const DrawKey& key);

}  // namespace patchbay::ops
