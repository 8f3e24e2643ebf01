// normalize: the formula of one value. Host and device, templated on the value type.
#pragma once

#include "runtime/core/random.h"

namespace patchbay::ops {

/// The parameters of one channel.
struct NormalizeChannel {
  double scale = 255.0, mean = 0.0, std = 1.0;
};

/// (x / scale - mean) / std. In double the error is far below what rounding to float leaves, so the
/// rounded result is the same on every machine and device.
template <typename Value>
PB_HOST_DEVICE inline Value NormalizeValue(Value x, Value scale, Value mean, Value std) {
  return (x / scale - mean) / std;
}

}  // namespace patchbay::ops
