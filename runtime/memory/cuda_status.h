// CUDA's error codes as Status. Include only where PATCHBAY_CUDA_API is 1 (this folder and ops).
#pragma once

#include <string_view>

#include <cuda_runtime_api.h>

#include "runtime/core/status.h"

namespace patchbay::memory {

/// OK, or "doing: <CUDA's name>: <its text>": ResourceExhausted when memory is short, Unavailable
/// when there is no driver or device, InvalidArgument for handles and values CUDA refuses,
/// otherwise Internal. Clears the thread's last error, so that the next call starts clean.
Status FromCuda(std::string_view doing, cudaError_t error);

}  // namespace patchbay::memory
