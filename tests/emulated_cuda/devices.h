// Devices as a whole: which there are, and whether they still answer.
#pragma once

#include "cuda_runtime_api.h"

namespace patchbay::emulated_cuda {

/// Whether the device has been lost: it answers nothing any more.
bool Lost(int device);
/// Counts a piece of work that runs; the device is lost after as many as the settings say.
void CountWork(int device);
cudaUUID_t UuidOf(int device);

}  // namespace patchbay::emulated_cuda
