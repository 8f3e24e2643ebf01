#include "ops/gather.cuh"
#include "ops/rotate90_math.h"

namespace patchbay::ops {

int LaunchRotate90Kernel(const Rotate90Source& source, const Strided& d_in, const Strided& d_out,
                         cudaStream_t stream) {
  return LaunchGather(d_in, d_out, source, stream);
}

}  // namespace patchbay::ops
