// Machines on which GPUs cannot be used as usual: PATCHBAY_EMULATED_GPU_FAULT has one of
//   no_driver        libcuda is not there
//   old_driver       the driver is of an older CUDA than the program
//   prohibited       compute mode: no process may use the devices
//   exclusive:NAME   compute mode: one process at a time; NAME is what all that compete share
//   mig              each device is a slice of a larger one
//   no_ipc           blocks of other processes cannot be mapped, as between containers
//   no_export        blocks cannot be shared at all, as under WSL
#pragma once

#include "cuda_runtime_api.h"

namespace patchbay::emulated_cuda {

inline constexpr int kRuntimeVersion = 12'080, kOldDriverVersion = 11'040;

/// 1000 * major + 10 * minor, 0 without a driver.
int DriverVersion();
/// cudaSuccess if calls may succeed, otherwise the error that all calls return.
cudaError_t Usable();
/// Whether this process may have a context on the device. Under the lock.
cudaError_t OpenContext(int device);
cudaComputeMode ComputeMode();
bool IsMigSlice();
bool MayImport();
bool MayExport();

}  // namespace patchbay::emulated_cuda
