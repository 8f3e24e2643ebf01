// A build without CUDA: the kernel is not there. LaunchOutcome turns every launch into
// Unimplemented, whatever this returns.
#include "ops/chain/chain_kernel.h"

namespace patchbay::ops {

int LaunchChainKernel(const ChainKernelBatch&, CUstream_st*) { return 0; }

}  // namespace patchbay::ops
