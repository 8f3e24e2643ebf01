#include "ops/crop_math.h"
#include "ops/gather.cuh"

namespace patchbay::ops {

int LaunchCropKernel(const CropSource& source, const Strided& d_in, const Strided& d_out,
                     cudaStream_t stream) {
  return LaunchGather(d_in, d_out, source, stream);
}

}  // namespace patchbay::ops
