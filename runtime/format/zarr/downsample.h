// Building pyramid levels: factor 2, area average, half rounds up.
#pragma once

#include "runtime/core/status.h"
#include "runtime/core/tensor_view.h"

namespace patchbay::zarr {

/// out(z, y, x, c) = the mean of in(2z..2z+1, 2y..2y+1, 2x..2x+1, c); where the input ends on an
/// odd slice, row or column, of the pixels that are there. Integers are rounded to nearest, halves
/// up; a float32 mean is computed in double and rounded once. Both views are (depth, height, width,
/// channels), uint8, uint16, int16 or float32, channels interleaved (stride of axis 3 is the
/// element, of axis 2 the pixel); rows and slices may have any stride. `out` must be ceil(in / 2)
/// on every axis, so a 2-D image stays one. Pure, so a shard can be built piecewise from even
/// offsets with the same result as at once.
Status DownsampleByTwo(const ConstTensorView& in, const TensorView& out);

}  // namespace patchbay::zarr
