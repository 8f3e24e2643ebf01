// grey: one value of a pixel's red, green and blue, in integers, equal to OpenCV's RGB2GRAY. Used
// by spectral and tissue_mask, on both devices.
#pragma once

#include <cstdint>

#include "runtime/core/random.h"

namespace patchbay::ops {

/// 0.299 R + 0.587 G + 0.114 B in 2^-15, rounded to nearest.
PB_HOST_DEVICE inline std::uint32_t GreyOf(std::uint32_t red, std::uint32_t green,
                                           std::uint32_t blue) {
  return (9'798u * red + 19'235u * green + 3'735u * blue + 16'384u) >> 15;
}

}  // namespace patchbay::ops
