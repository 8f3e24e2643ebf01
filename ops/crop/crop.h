// crop: takes a window out of a larger image. In a chain the source box is enlarged by the margins,
// so that the finished patch keeps its size. Exact.
#pragma once

#include "ops/crop/crop_math.h"
#include "runtime/model/ops/crop.h"

namespace patchbay::ops {

/// Uniform over the (2 margin_y + 1) x (2 margin_x + 1) places (words 0..1 of the key's first block
/// for y, 2..3 for x), or the centre.
CropParameters DrawCrop(const plan::CropOptions& options, const DrawKey& key);

}  // namespace patchbay::ops
