// rotate90: turns an image by 0, 90, 180 or 270 degrees, each equally likely. Exact.
#pragma once

#include "ops/rotate90/rotate90_math.h"

namespace patchbay::ops {

/// The two highest bits of the key's first word.
Rotate90Parameters DrawRotate90(const DrawKey& key);

}  // namespace patchbay::ops
