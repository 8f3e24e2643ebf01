// A build without CUDA: the kernels are not there. LaunchOutcome turns every launch into
// Unimplemented, whatever these return.
#include "ops/spectral/spectral_launch.h"
#include "runtime/memory/gpu.h"

namespace patchbay::ops {

int LaunchSpectralRows(const spectral_passes::RowsPass&, int, memory::GpuStream) { return 0; }
int LaunchSpectralColumns(const spectral_passes::ColumnsPass&, memory::GpuStream) { return 0; }

}  // namespace patchbay::ops
