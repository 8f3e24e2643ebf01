// A build without CUDA: the kernels are not there. LaunchOutcome turns every launch into
// Unimplemented, whatever this returns.
#include "ops/chain/chain_kernel.h"
#include "ops/chain/volume_kernel.h"

namespace patchbay::ops {

int LaunchTables(const TableLaunch&, CUstream_st*) { return 0; }
int LaunchValues(const ValueLaunch&, CUstream_st*) { return 0; }
int LaunchFloat(const FloatLaunch&, CUstream_st*) { return 0; }
int LaunchLabels(const LabelLaunch&, CUstream_st*) { return 0; }
int LaunchVolumeVoxels(const VolumeLaunch&, CUstream_st*) { return 0; }
int LaunchVolumeCurves(const VolumeLaunch&, CUstream_st*) { return 0; }
int LaunchVolumeLabels(const VolumeLaunch&, CUstream_st*) { return 0; }

}  // namespace patchbay::ops
