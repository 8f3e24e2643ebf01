// flip: mirrors an image left-right and top-bottom, each with its own probability. Exact.
#pragma once

#include "ops/geometry/flip_math.h"
#include "runtime/model/ops/flip.h"

namespace patchbay::ops {

/// Words 0 and 1 of the key's first block decide horizontal and vertical.
FlipParameters DrawFlip(const plan::FlipOptions& options, const DrawKey& key);

}  // namespace patchbay::ops
