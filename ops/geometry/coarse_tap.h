// The resampling of low_resolution along one axis, as plain values that kernels take too.
#pragma once

#include <cstdint>

namespace patchbay::ops {

/// The two samples of an axis that sample i becomes, and their parts, when the axis is taken down
/// to fewer samples by order 0 and up again by order 1.
struct CoarseTap {
  std::int32_t first = 0, second = 0;
  float first_part = 1, second_part = 0;
};

}  // namespace patchbay::ops
