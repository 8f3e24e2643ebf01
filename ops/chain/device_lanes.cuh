// One float of a kernel, and how it is stored. Include from .cu files only. A part of chain.
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
  static PB_LANE_CODE double Of(double a, double b) {
#if defined(__CUDA_ARCH__) || defined(PATCHBAY_EMULATED_CUDA)
    return __dmul_rn(a, b);
#else
    return a * b;
#endif
  }
};
using DeviceLanes = OneLane<RoundedProduct>;

/// Element `at` of finished values.
__device__ inline void StoreAs(CastTo to, std::byte* d_out, std::int64_t at, float value) {
  const std::uint32_t bits = CastBits(value, to);
  switch (to) {
    case CastTo::kUint8:
      reinterpret_cast<std::uint8_t*>(d_out)[at] = static_cast<std::uint8_t>(bits);
      break;
    case CastTo::kFloat32:
      reinterpret_cast<std::uint32_t*>(d_out)[at] = bits;
      break;
    default:
      reinterpret_cast<std::uint16_t*>(d_out)[at] = static_cast<std::uint16_t>(bits);
  }
}

}  // namespace patchbay::ops
