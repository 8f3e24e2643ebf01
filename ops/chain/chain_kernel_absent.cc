// A build without CUDA: the kernels are not there. LaunchOutcome turns every launch into
// Unimplemented, whatever this returns.
#include "ops/chain/chain_kernel.h"

namespace patchbay::ops {

int LaunchTables(const TableLaunch&, CUstream_st*) { return 0; }
int LaunchGather(const PatchLaunch&, CUstream_st*) { return 0; }
int LaunchWhole(const PatchLaunch&, const WholeRun&, CUstream_st*) { return 0; }
int LaunchLabels(const PatchLaunch&, CUstream_st*) { return 0; }

}  // namespace patchbay::ops
