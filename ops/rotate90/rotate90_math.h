// rotate90: which pixel an image turned by quarter turns takes. Host and device.
#pragma once

#include "ops/geometry/strided.h"

namespace patchbay::ops {

/// Quarter turns against the clock, as numpy.rot90 counts them: 0..3.
struct Rotate90Parameters {
  int turns = 0;
  bool operator==(const Rotate90Parameters& o) const { return turns == o.turns; }
};

struct Rotate90Source {
  Rotate90Parameters parameters;
  std::int64_t height, width;  ///< of the source

  PB_HOST_DEVICE PixelPlace operator()(PixelPlace to) const {
    switch (parameters.turns) {
      case 1:
        return {to.x, width - 1 - to.y};
      case 2:
        return {height - 1 - to.y, width - 1 - to.x};
      case 3:
        return {height - 1 - to.x, to.y};
      default:
        return to;
    }
  }
};

}  // namespace patchbay::ops
