// The kernel sixteen values at a time.
#define HWY_BASELINE_TARGETS HWY_AVX3
#include "ops/spectral/spectral_wide_kernel.h"

namespace patchbay::ops {

SpectralKernel Avx512SpectralKernel(int frame, bool hann) {
  return KernelOf<WideLanes>(frame, hann);
}

}  // namespace patchbay::ops
