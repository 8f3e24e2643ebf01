#include "tests/bench/gpu/device_copy.h"

#if PATCHBAY_CUDA_API
#include "runtime/memory/cuda_status.h"
#endif

namespace patchbay::memory {

#if PATCHBAY_CUDA_API

Status CopyOnDevice(std::byte* d_to, const std::byte* d_from, std::uint64_t size_bytes,
                    GpuStream stream) {
  return FromCuda("copy on device",
                  cudaMemcpyAsync(d_to, d_from, static_cast<std::size_t>(size_bytes),
                                  cudaMemcpyDeviceToDevice, stream));
}

#else

Status CopyOnDevice(std::byte*, const std::byte*, std::uint64_t, GpuStream) {
  return Unimplemented("copy on device: this build has no CUDA");
}

#endif

}  // namespace patchbay::memory
