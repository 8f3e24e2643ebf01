// The part of CUDA's driver API that runtime/python finds by dlopen, and what a test's consumer
// needs beside it: libcuda.so.1 for processes that do not link the runtime API. Names and values
// are CUDA's; a context is the device itself.
#include <array>
#include <cstdint>
#include <cstring>
#include <vector>

#include "cuda_runtime_api.h"
#include "tests/emulated_cuda/devices.h"
#include "tests/emulated_cuda/emulation.h"

using patchbay::emulated_cuda::kMaxDevices;

namespace {

using Address = std::uintptr_t;

/// The addresses that stand for contexts.
std::array<char, kMaxDevices> contexts;
thread_local std::vector<int> current;  ///< devices, innermost last

/// CU_STREAM_LEGACY is a handle of its own.
cudaStream_t StreamOf(void* stream) {
  return reinterpret_cast<Address>(stream) == 1 ? nullptr : static_cast<cudaStream_t>(stream);
}

template <typename T>
T* PointerOf(Address address) {
  return reinterpret_cast<T*>(address);
}

int Device(int* device, int ordinal) {
  int count = 0;
  if (const cudaError_t error = cudaGetDeviceCount(&count); error != cudaSuccess) return error;
  *device = ordinal;
  return ordinal >= 0 && ordinal < count ? cudaSuccess : cudaErrorInvalidDevice;
}

}  // namespace

extern "C" {

struct CUipcMemHandle {
  char reserved[64];
};

int cuInit(unsigned) {
  int count = 0;
  return cudaGetDeviceCount(&count);
}
int cuGetErrorName(int error, const char** name) {
  *name = cudaGetErrorName(static_cast<cudaError_t>(error));
  return cudaSuccess;
}
int cuDeviceGetCount(int* count) { return cudaGetDeviceCount(count); }
int cuDeviceGet(int* device, int ordinal) { return Device(device, ordinal); }
int cuDeviceGetUuid(char* uuid, int device) {
  const cudaUUID_t found = patchbay::emulated_cuda::UuidOf(device);
  std::memcpy(uuid, found.bytes, sizeof found.bytes);
  return cudaSuccess;
}
int cuDevicePrimaryCtxRetain(void** context, int device) {
  *context = &contexts[static_cast<std::size_t>(device)];
  return cudaSuccess;
}
int cuDevicePrimaryCtxRelease_v2(int) { return cudaSuccess; }
int cuCtxPushCurrent_v2(void* context) {
  current.push_back(static_cast<int>(static_cast<char*>(context) - contexts.data()));
  return cudaSetDevice(current.back());
}
int cuCtxPopCurrent_v2(void** context) {
  if (current.empty()) return cudaErrorDeviceUninitialized;
  *context = &contexts[static_cast<std::size_t>(current.back())];
  current.pop_back();
  return current.empty() ? cudaSuccess : cudaSetDevice(current.back());
}

int cuIpcOpenMemHandle_v2(Address* d_memory, CUipcMemHandle handle, unsigned flags) {
  cudaIpcMemHandle_t ipc;
  std::memcpy(&ipc, &handle, sizeof ipc);
  void* opened = nullptr;
  const cudaError_t error = cudaIpcOpenMemHandle(&opened, ipc, flags);
  *d_memory = reinterpret_cast<Address>(opened);
  return error;
}
int cuIpcCloseMemHandle(Address d_memory) {
  return cudaIpcCloseMemHandle(PointerOf<void>(d_memory));
}
int cuMemHostRegister_v2(void* memory, std::size_t size_bytes, unsigned flags) {
  return cudaHostRegister(memory, size_bytes, flags);
}
int cuMemHostUnregister(void* memory) { return cudaHostUnregister(memory); }

int cuEventCreate(void** event, unsigned flags) {
  return cudaEventCreateWithFlags(reinterpret_cast<cudaEvent_t*>(event), flags);
}
int cuEventDestroy_v2(void* event) { return cudaEventDestroy(static_cast<cudaEvent_t>(event)); }
int cuEventRecord(void* event, void* stream) {
  return cudaEventRecord(static_cast<cudaEvent_t>(event), StreamOf(stream));
}
int cuEventSynchronize(void* event) {
  return cudaEventSynchronize(static_cast<cudaEvent_t>(event));
}

// The functions that a consumer calls.
int cuStreamCreate(void** stream, unsigned flags) {
  return cudaStreamCreateWithFlags(reinterpret_cast<cudaStream_t*>(stream), flags);
}
int cuStreamSynchronize(void* stream) { return cudaStreamSynchronize(StreamOf(stream)); }
int cuMemAlloc_v2(Address* d_memory, std::size_t size_bytes) {
  void* made = nullptr;
  const cudaError_t error = cudaMalloc(&made, size_bytes);
  *d_memory = reinterpret_cast<Address>(made);
  return error;
}
int cuMemHostAlloc(void** memory, std::size_t size_bytes, unsigned flags) {
  return cudaHostAlloc(memory, size_bytes, flags);
}
int cuMemcpyDtoHAsync_v2(void* to, Address from, std::size_t size_bytes, void* stream) {
  return cudaMemcpyAsync(to, PointerOf<void>(from), size_bytes, cudaMemcpyDeviceToHost,
                         StreamOf(stream));
}
int cuMemcpyHtoDAsync_v2(Address to, const void* from, std::size_t size_bytes, void* stream) {
  return cudaMemcpyAsync(PointerOf<void>(to), from, size_bytes, cudaMemcpyHostToDevice,
                         StreamOf(stream));
}

}  // extern "C"
