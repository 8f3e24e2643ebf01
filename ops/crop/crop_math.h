// crop: which pixel a window takes. Host and device.
#pragma once

#include "ops/geometry/strided.h"

namespace patchbay::ops {

/// Where the window's first pixel lies in the source.
struct CropParameters {
  std::int64_t y = 0, x = 0;
  bool operator==(const CropParameters& o) const { return y == o.y && x == o.x; }
};

struct CropSource {
  CropParameters parameters;

  PB_HOST_DEVICE PixelPlace operator()(PixelPlace to) const {
    return {to.y + parameters.y, to.x + parameters.x};
  }
};

}  // namespace patchbay::ops
