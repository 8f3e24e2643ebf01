// One float of a kernel. Include from .cu files only. A part of chain.
#pragma once

#include <cuda_runtime.h>

#include "ops/chain/scalar_lanes.h"

namespace patchbay::ops {

/// A product that no compiler fuses with the addition that follows.
struct RoundedProduct {
  static PB_LANE_CODE float Of(float a, float b) {
#if defined(__CUDA_ARCH__) || defined(PATCHBAY_EMULATED_CUDA)
    return __fmul_rn(a, b);
#else
    return a * b;  // the host's half of a kernel, which nobody calls
#endif
  }
};
using DeviceLanes = OneLane<RoundedProduct>;

}  // namespace patchbay::ops
