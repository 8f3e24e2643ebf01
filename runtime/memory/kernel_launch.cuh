// How every kernel is started and finds its shared memory. The same two functions compile under
// nvcc and for the emulated device (tests/emulated_cuda). Include from .cu files only.
#pragma once

#include <cstddef>
#include <utility>

#include <cuda_runtime.h>

namespace patchbay::memory {

struct KernelShape {
  dim3 grid, block;
  std::size_t shared_bytes = 0;  ///< dynamic shared memory of a block
};

/// Queues `kernel` in `stream`; its error is returned, and an earlier call's is not. Does not
/// synchronise.
template <typename... Parameters, typename... Arguments>
cudaError_t LaunchKernel(const KernelShape& shape, cudaStream_t stream,
                         void (*kernel)(Parameters...), Arguments&&... arguments) {
  cudaLaunchConfig_t config{};
  config.gridDim = shape.grid;
  config.blockDim = shape.block;
  config.dynamicSmemBytes = shape.shared_bytes;
  config.stream = stream;
  return cudaLaunchKernelEx(&config, kernel, std::forward<Arguments>(arguments)...);
}

/// The block's dynamic shared memory, aligned to 16 bytes.
template <typename T>
__device__ __forceinline__ T* DynamicShared() {
#if defined(PATCHBAY_EMULATED_CUDA)
  return static_cast<T*>(emulated_cuda::DynamicSharedMemory());
#else
  extern __shared__ __align__(16) unsigned char sm_dynamic[];
  return reinterpret_cast<T*>(sm_dynamic);
#endif
}

}  // namespace patchbay::memory
