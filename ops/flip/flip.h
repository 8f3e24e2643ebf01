// flip: mirrors an image left-right and top-bottom, each with its own probability. Exact.
#pragma once

#include "ops/flip/flip_math.h"
#include "runtime/model/ops/flip.h"

namespace patchbay::ops {

/// Words 0 and 1 of the key's first block decide horizontal and vertical.
FlipParameters DrawFlip(const plan::FlipOptions& options, const DrawKey& key);

/// Words 0 to 2 of the key's first block decide z, y and x, or for a flip without axes words 0 and
/// 1 x and y, as in a 2-D image.
void DrawMirrors(const plan::FlipOptions& options, const DrawKey& key, bool (&mirrored)[3]);

}  // namespace patchbay::ops
