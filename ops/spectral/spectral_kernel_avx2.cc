// The kernel eight values at a time.
#define HWY_BASELINE_TARGETS HWY_AVX2
#include "ops/spectral/spectral_wide_kernel.h"

namespace patchbay::ops {

SpectralKernel Avx2SpectralKernel(int frame, bool hann) { return KernelOf<WideLanes>(frame, hann); }

}  // namespace patchbay::ops
