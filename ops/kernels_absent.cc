// A build without CUDA: the kernels are not there. LaunchOutcome turns every launch into
// Unimplemented, whatever these return.
#if !PATCHBAY_HAVE_CUDA

#include "ops/cast.h"
#include "ops/chain_kernel.h"
#include "ops/crop.h"
#include "ops/flip.h"
#include "ops/normalize.h"
#include "ops/rotate90.h"
#include "ops/spectral_launch.h"

namespace patchbay::ops {

int LaunchFlipKernel(const FlipSource&, const Strided&, const Strided&, memory::GpuStream) {
  return 0;
}
int LaunchRotate90Kernel(const Rotate90Source&, const Strided&, const Strided&, memory::GpuStream) {
  return 0;
}
int LaunchCropKernel(const CropSource&, const Strided&, const Strided&, memory::GpuStream) {
  return 0;
}
int LaunchCastKernel(CastTo, const Strided&, const Strided&, memory::GpuStream) { return 0; }
int LaunchNormalizeKernel(const NormalizeConstants&, const Strided&, const Strided&,
                          memory::GpuStream) {
  return 0;
}
int LaunchChainKernel(const ChainKernelBatch&, memory::GpuStream) { return 0; }
int LaunchSpectralRows(const spectral_passes::RowsPass&, int, memory::GpuStream) { return 0; }
int LaunchSpectralColumns(const spectral_passes::ColumnsPass&, memory::GpuStream) { return 0; }

}  // namespace patchbay::ops

#endif
