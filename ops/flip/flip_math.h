// flip: which pixel a mirrored image takes. Host and device.
#pragma once

#include "ops/geometry/strided.h"

namespace patchbay::ops {

/// Whether to mirror left-right (horizontal) and top-bottom (vertical).
struct FlipParameters {
  bool horizontal = false, vertical = false;
  bool operator==(const FlipParameters& o) const {
    return horizontal == o.horizontal && vertical == o.vertical;
  }
};

struct FlipSource {
  FlipParameters parameters;
  std::int64_t height, width;

  PB_HOST_DEVICE PixelPlace operator()(PixelPlace to) const {
    return {parameters.vertical ? height - 1 - to.y : to.y,
            parameters.horizontal ? width - 1 - to.x : to.x};
  }
};

}  // namespace patchbay::ops
