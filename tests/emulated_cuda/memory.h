// Device memory: memfds mapped between guard pages, closed to the host but while work runs; and
// host memory that is page-locked.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include <sys/types.h>

#include "cuda_runtime_api.h"

namespace patchbay::emulated_cuda {

/// Opens the memory that a device may touch until destroyed; nests. Under the lock.
class OpenMemory {
 public:
  explicit OpenMemory(int device);
  OpenMemory(const OpenMemory&) = delete;
  OpenMemory& operator=(const OpenMemory&) = delete;
  ~OpenMemory();

 private:
  int device_;
};

// All under the lock.

cudaError_t Allocate(std::size_t size_bytes, int device, void** d_memory);
/// cudaErrorInvalidValue unless `d_memory` is from Allocate. Reports bytes written outside the
/// block.
cudaError_t Free(void* d_memory);
std::size_t AllocatedBytes(int device);
cudaError_t Export(void* d_memory, cudaIpcMemHandle_t& handle);
cudaError_t Import(const cudaIpcMemHandle_t& handle, int device, void** d_memory);
cudaError_t Unmap(void* d_memory);

/// The device whose memory these bytes are: -1 if a byte lies outside of every block, kHost if all
/// do.
inline constexpr int kHostMemory = -2, kNoBlock = -1;
int DeviceOf(const void* memory, std::size_t size_bytes);
/// The device of the block that begins here, kNoBlock without one.
int OwnerOf(const void* d_memory);

/// This process and those that opened its blocks on the device; dead ones for a seeded time more.
std::vector<pid_t> ProcessesOf(int device);

cudaError_t Pin(void* memory, std::size_t size_bytes);
cudaError_t Unpin(void* memory);
/// The size of the pinned range that begins here, or 0.
std::size_t PinnedBytes(const void* memory);
bool IsPinned(const void* memory, std::size_t size_bytes);

}  // namespace patchbay::emulated_cuda
