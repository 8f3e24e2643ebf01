// Building pyramid levels: factor 2, area average, half rounds up.
#pragma once

#include "runtime/base/status.h"
#include "runtime/base/tensor_view.h"

namespace patchbay::zarr {

/// out(y, x, c) = round-half-up of the mean of in(2y..2y+1, 2x..2x+1, c); where the input ends on
/// an odd row or column, of the pixels that are there. Both views are (height, width, channels),
/// uint8 or uint16, channels interleaved (stride of axis 2 is the element, of axis 1 the pixel);
/// rows may have any stride. `out` must be ceil(in / 2). Pure, so a shard can be built piecewise
/// from even offsets with the same result as at once.
Status DownsampleByTwo(const ConstTensorView& in, const TensorView& out);

}  // namespace patchbay::zarr
