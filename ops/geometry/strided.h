// An image as kernels see it: plain pointers and strides, no dependence on the rest of the program,
// so that device code can include it.
#pragma once

#include <cstddef>
#include <cstdint>

#include "runtime/core/random.h"

namespace patchbay::ops {

/// Rows, columns, channels; strides in bytes. Does not own.
struct Strided {
  std::byte* data = nullptr;  ///< only read when it is a function's input
  std::int64_t height = 0, width = 0, channels = 0;
  std::int64_t row_bytes = 0, column_bytes = 0, channel_bytes = 0;
  int element_bytes = 1;

  PB_HOST_DEVICE std::byte* At(std::int64_t y, std::int64_t x, std::int64_t c) const {
    return data + y * row_bytes + x * column_bytes + c * channel_bytes;
  }
};

/// A pixel of an image.
struct PixelPlace {
  std::int64_t y = 0, x = 0;
};

}  // namespace patchbay::ops
