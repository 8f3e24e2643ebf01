// The runtime API itself: checks what it is given as CUDA does, and hands it to memory, streams and
// fibers.
#include <algorithm>
#include <array>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "cuda_runtime.h"
#include "tests/emulated_cuda/devices.h"
#include "tests/emulated_cuda/emulation.h"
#include "tests/emulated_cuda/faults.h"
#include "tests/emulated_cuda/fibers.h"
#include "tests/emulated_cuda/memory.h"
#include "tests/emulated_cuda/streams.h"

namespace patchbay::emulated_cuda {
namespace {

thread_local cudaError_t last_error = cudaSuccess;
thread_local int current_device = 0;

std::array<bool, kMaxDevices> lost{};
std::uint64_t work_done = 0;

std::unordered_map<const void*, std::size_t>& SharedLimits() {
  static auto* limits = new std::unordered_map<const void*, std::size_t>;
  return *limits;
}

cudaError_t Failed(cudaError_t error) {
  if (error != cudaSuccess) last_error = error;
  return error;
}

/// One call of the API: under the lock, on a device that answers if the call is for one.
class Call {
 public:
  explicit Call(bool for_device) : lock_(TheLock()) {
    if (!Running().empty()) Report("a kernel calls the runtime API");
    error_ = Usable();
    if (error_ != cudaSuccess) return;
    if (for_device && Lost(current_device)) {
      error_ = cudaErrorUnknown;
    } else {
      Drift();
    }
  }
  cudaError_t error() const { return error_; }

 private:
  std::lock_guard<std::recursive_mutex> lock_;
  cudaError_t error_ = cudaSuccess;
};

/// Runs `body` as a call that needs no context, and makes its error the thread's last one.
template <typename Body>
cudaError_t Describe(const Body& body) {
  const Call call(false);
  return Failed(call.error() != cudaSuccess ? call.error() : body());
}

/// `body` as a call in this process's context on the current device.
template <typename Body>
cudaError_t Run(const Body& body) {
  const Call call(true);
  if (call.error() != cudaSuccess) return Failed(call.error());
  const cudaError_t opened = OpenContext(current_device);
  if (opened != cudaSuccess) return Failed(opened);
  const cudaError_t error = body();
  return Failed(error == cudaSuccess && Lost(current_device) ? cudaErrorUnknown : error);
}

cudaError_t Copy(void* to, const void* from, std::size_t size, cudaMemcpyKind kind,
                 const std::shared_ptr<Stream>& stream) {
  const bool up = kind == cudaMemcpyHostToDevice, down = kind == cudaMemcpyDeviceToHost;
  const int to_device = DeviceOf(to, size), from_device = DeviceOf(from, size);
  // A byte outside of a block, or another direction than the kind says.
  if (to_device == kNoBlock || from_device == kNoBlock || (to_device == kHostMemory) != down ||
      (from_device == kHostMemory) != up) {
    return cudaErrorInvalidValue;
  }
  auto work = std::make_shared<Work>();
  const void* host = up ? from : down ? to : nullptr;
  const bool pinned = host == nullptr || IsPinned(host, size);
  const int other = up || down ? -1 : from_device;
  const int owner = up ? to_device : down ? from_device : to_device;
  if (up && !pinned) {
    // Staged before the call returns.
    const auto* bytes = static_cast<const std::byte*>(from);
    work->run = [to, owner, staged = std::vector<std::byte>(bytes, bytes + size)] {
      const OpenMemory open(owner);
      std::memcpy(to, staged.data(), staged.size());
    };
    Queue(stream, work);
    return cudaSuccess;
  }
  if (pinned && host != nullptr) {
    work->host = static_cast<const std::byte*>(host);
    work->host_bytes = size;
    work->reads_host = up;
  }
  work->kind = up ? "up" : "down";
  work->run = [to, from, size, owner, other] {
    const OpenMemory open(owner), open_other(other < 0 ? owner : other);
    std::memmove(to, from, size);
  };
  Queue(stream, work);
  if (down && !pinned) Finish(work);  // comes back once the bytes are there
  return cudaSuccess;
}

cudaError_t CheckLaunch(const cudaLaunchConfig_t& config, const KernelCall& call) {
  const dim3& grid = config.gridDim;
  const dim3& block = config.blockDim;
  const std::uint64_t threads = std::uint64_t{block.x} * block.y * block.z;
  if (grid.x == 0 || grid.y == 0 || grid.z == 0 || threads == 0 || threads > kMaxThreads ||
      block.z > 64 || grid.x > 0x7FFFFFFFu || grid.y > 65'535 || grid.z > 65'535) {
    return cudaErrorInvalidConfiguration;
  }
  const auto limit = SharedLimits().find(call.kernel);
  const std::size_t shared = limit == SharedLimits().end() ? kSharedBytes : limit->second;
  if (config.dynamicSmemBytes > shared || call.parameter_bytes > kParameterBytes ||
      config.numAttrs != 0) {
    return cudaErrorInvalidValue;
  }
  return cudaSuccess;
}

}  // namespace

bool Lost(int device) { return lost[static_cast<std::size_t>(device)]; }

void CountWork(int device) {
  if (++work_done > TheSettings().lost_after) lost[static_cast<std::size_t>(device)] = true;
}

cudaUUID_t UuidOf(int device) {
  return {{'\xE0', 'm', 'u', 'l', 'a', 't', '\x40', 'e', '\x80', 'd', 0, 0, 0, 0, 0,
           static_cast<char>(device)}};
}

cudaError_t Launch(const cudaLaunchConfig_t& config, KernelCall call) {
  return Run([&]() -> cudaError_t {
    const auto stream = StreamOf(config.stream, current_device);
    if (stream == nullptr || stream->device != current_device) {
      return cudaErrorInvalidResourceHandle;
    }
    const cudaError_t error = CheckLaunch(config, call);
    if (error != cudaSuccess) return error;
    auto work = std::make_shared<Work>();
    const Grid grid{config.gridDim, config.blockDim, config.dynamicSmemBytes, call.kernel, nullptr};
    work->kind = "kernel";
    work->run = [grid, run = std::move(call.run)] {
      Grid whole = grid;
      whole.run = &run;
      RunGrid(whole);
    };
    Queue(stream, work);
    return cudaSuccess;
  });
}

cudaError_t SetDynamicSharedLimit(const void* kernel, int bytes) {
  return Run([&] {
    if (bytes < 0 || static_cast<std::size_t>(bytes) > kSharedOptinBytes) {
      return cudaErrorInvalidValue;
    }
    SharedLimits()[kernel] = static_cast<std::size_t>(bytes);
    return cudaSuccess;
  });
}

cudaError_t CountResidentBlocks(int* blocks, const void* kernel, int threads, std::size_t bytes) {
  return Run([&] {
    (void)kernel;
    if (threads < 1 || threads > kMaxThreads) return cudaErrorInvalidValue;
    const std::size_t by_shared = kSharedOfProcessor / (bytes + kSharedReserved);
    *blocks = static_cast<int>(std::min<std::size_t>(
        {std::size_t{2'048} / static_cast<std::size_t>(threads), by_shared, 32}));
    return cudaSuccess;
  });
}

}  // namespace patchbay::emulated_cuda

using namespace patchbay::emulated_cuda;  // NOLINT: what follows is C's API

cudaError_t cudaGetLastError() { return std::exchange(last_error, cudaSuccess); }
cudaError_t cudaPeekAtLastError() { return last_error; }

namespace {

struct ErrorText {
  cudaError_t error;
  const char *name, *text;
};
constexpr ErrorText kErrors[] = {
    {cudaSuccess, "cudaSuccess", "no error"},
    {cudaErrorInvalidValue, "cudaErrorInvalidValue", "invalid argument"},
    {cudaErrorMemoryAllocation, "cudaErrorMemoryAllocation", "out of memory"},
    {cudaErrorInvalidConfiguration, "cudaErrorInvalidConfiguration",
     "invalid configuration argument"},
    {cudaErrorInsufficientDriver, "cudaErrorInsufficientDriver",
     "CUDA driver version is insufficient for CUDA runtime version"},
    {cudaErrorDevicesUnavailable, "cudaErrorDevicesUnavailable",
     "CUDA-capable device(s) is/are busy or unavailable"},
    {cudaErrorNoDevice, "cudaErrorNoDevice", "no CUDA-capable device is detected"},
    {cudaErrorInvalidDevice, "cudaErrorInvalidDevice", "invalid device ordinal"},
    {cudaErrorDeviceUninitialized, "cudaErrorDeviceUninitialized", "invalid device context"},
    {cudaErrorMapBufferObjectFailed, "cudaErrorMapBufferObjectFailed",
     "mapping of buffer object failed"},
    {cudaErrorECCUncorrectable, "cudaErrorECCUncorrectable", "uncorrectable ECC error encountered"},
    {cudaErrorIllegalAddress, "cudaErrorIllegalAddress",
     "an illegal memory access was encountered"},
    {cudaErrorLaunchFailure, "cudaErrorLaunchFailure", "unspecified launch failure"},
    {cudaErrorNotSupported, "cudaErrorNotSupported", "operation not supported"},
    {cudaErrorInvalidResourceHandle, "cudaErrorInvalidResourceHandle", "invalid resource handle"},
    {cudaErrorNotReady, "cudaErrorNotReady", "device not ready"},
    {cudaErrorHostMemoryAlreadyRegistered, "cudaErrorHostMemoryAlreadyRegistered",
     "part or all of the requested memory range is already mapped"},
    {cudaErrorHostMemoryNotRegistered, "cudaErrorHostMemoryNotRegistered",
     "pointer does not correspond to a registered memory region"},
    {cudaErrorUnknown, "cudaErrorUnknown", "unknown error"},
};

const ErrorText& TextOf(cudaError_t error) {
  for (const ErrorText& text : kErrors) {
    if (text.error == error) return text;
  }
  return kErrors[std::size(kErrors) - 1];
}

}  // namespace

const char* cudaGetErrorName(cudaError_t error) { return TextOf(error).name; }
const char* cudaGetErrorString(cudaError_t error) { return TextOf(error).text; }

cudaError_t cudaDriverGetVersion(int* version) {
  *version = DriverVersion();
  return cudaSuccess;
}

cudaError_t cudaRuntimeGetVersion(int* version) {
  *version = kRuntimeVersion;
  return cudaSuccess;
}

cudaError_t cudaGetDeviceCount(int* count) {
  *count = TheSettings().devices;
  return Describe([] { return cudaSuccess; });
}

cudaError_t cudaGetDeviceProperties(cudaDeviceProp* properties, int device) {
  return Describe([&] {
    if (device < 0 || device >= TheSettings().devices) return cudaErrorInvalidDevice;
    *properties = {};
    std::strcpy(properties->name,
                IsMigSlice() ? "Emulated GPU (sm_80) MIG 1g.5gb" : "Emulated GPU (sm_80)");
    properties->uuid = UuidOf(device);
    properties->totalGlobalMem = TheSettings().memory_bytes;
    properties->sharedMemPerBlock = kSharedBytes;
    properties->sharedMemPerBlockOptin = kSharedOptinBytes;
    properties->major = 8;
    properties->multiProcessorCount = kProcessors;
    properties->maxThreadsPerBlock = kMaxThreads;
    properties->warpSize = kWarp;
    return cudaSuccess;
  });
}

cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr attribute, int device) {
  return Describe([&] {
    if (device < 0 || device >= TheSettings().devices) return cudaErrorInvalidDevice;
    switch (attribute) {
      case cudaDevAttrMaxSharedMemoryPerBlock:
        *value = static_cast<int>(kSharedBytes);
        return cudaSuccess;
      case cudaDevAttrMultiProcessorCount:
        *value = kProcessors;
        return cudaSuccess;
      case cudaDevAttrComputeMode:
        *value = ComputeMode();
        return cudaSuccess;
      case cudaDevAttrMaxSharedMemoryPerBlockOptin:
        *value = static_cast<int>(kSharedOptinBytes);
        return cudaSuccess;
    }
    return cudaErrorInvalidValue;
  });
}

cudaError_t cudaSetDevice(int device) {
  const Call call(false);
  if (Usable() != cudaSuccess) return Failed(Usable());
  if (device < 0 || device >= TheSettings().devices) return Failed(cudaErrorInvalidDevice);
  current_device = device;
  return Failed(Lost(device) ? cudaErrorUnknown : OpenContext(device));
}

cudaError_t cudaGetDevice(int* device) {
  return Run([&] {
    *device = current_device;
    return cudaSuccess;
  });
}

cudaError_t cudaDeviceSynchronize() {
  return Run([] {
    FinishDevice(current_device);
    return cudaSuccess;
  });
}

cudaError_t cudaMalloc(void** d_memory, std::size_t size_bytes) {
  return Run([&] {
    *d_memory = nullptr;
    if (size_bytes == 0) return cudaSuccess;
    Note(nullptr, 0, "allocate");
    return Allocate(size_bytes, current_device, d_memory);
  });
}

cudaError_t cudaFree(void* d_memory) {
  return Run([&] {
    if (d_memory == nullptr) return cudaSuccess;
    const int owner = OwnerOf(d_memory);
    if (owner != kNoBlock) FinishDevice(owner);  // waits for the device, as CUDA does
    return Free(d_memory);
  });
}

cudaError_t cudaMemGetInfo(std::size_t* free_bytes, std::size_t* total_bytes) {
  return Run([&] {
    *total_bytes = TheSettings().memory_bytes;
    *free_bytes = *total_bytes - AllocatedBytes(current_device);
    return cudaSuccess;
  });
}

cudaError_t cudaHostAlloc(void** memory, std::size_t size_bytes, unsigned) {
  return Run([&] {
    *memory = nullptr;
    if (size_bytes == 0) return cudaSuccess;
    Note(nullptr, 0, "allocate");
    const std::size_t rounded = (size_bytes + 4'095) / 4'096 * 4'096;
    *memory = std::aligned_alloc(4'096, rounded);
    if (*memory == nullptr) return cudaErrorMemoryAllocation;
    std::memset(*memory, static_cast<int>(Roll() % 255 + 1), size_bytes);
    return Pin(*memory, size_bytes);
  });
}

cudaError_t cudaFreeHost(void* memory) {
  return Run([&] {
    if (memory == nullptr) return cudaSuccess;
    CheckIdle(memory, PinnedBytes(memory), "cudaFreeHost");
    if (Unpin(memory) != cudaSuccess) return cudaErrorInvalidValue;
    std::free(memory);
    return cudaSuccess;
  });
}

cudaError_t cudaHostRegister(void* memory, std::size_t size_bytes, unsigned) {
  return Run([&] {
    if (memory == nullptr || size_bytes == 0) return cudaErrorInvalidValue;
    return Pin(memory, size_bytes);
  });
}

cudaError_t cudaHostUnregister(void* memory) {
  return Run([&] {
    CheckIdle(memory, PinnedBytes(memory), "cudaHostUnregister");
    return Unpin(memory);
  });
}

cudaError_t cudaMemcpyAsync(void* to, const void* from, std::size_t size_bytes, cudaMemcpyKind kind,
                            cudaStream_t stream) {
  return Run([&]() -> cudaError_t {
    const auto on = StreamOf(stream, current_device);
    if (on == nullptr) return cudaErrorInvalidResourceHandle;
    if (size_bytes == 0) return cudaSuccess;
    return Copy(to, from, size_bytes, kind, on);
  });
}

cudaError_t cudaMemsetAsync(void* d_memory, int value, std::size_t size_bytes,
                            cudaStream_t stream) {
  return Run([&]() -> cudaError_t {
    const auto on = StreamOf(stream, current_device);
    if (on == nullptr) return cudaErrorInvalidResourceHandle;
    if (size_bytes == 0) return cudaSuccess;
    const int device = DeviceOf(d_memory, size_bytes);
    if (device < 0) return cudaErrorInvalidValue;
    auto work = std::make_shared<Work>();
    work->run = [=] {
      const OpenMemory open(device);
      std::memset(d_memory, value, size_bytes);
    };
    Queue(on, work);
    return cudaSuccess;
  });
}

cudaError_t cudaIpcGetMemHandle(cudaIpcMemHandle_t* handle, void* d_memory) {
  return Run([&] { return MayExport() ? Export(d_memory, *handle) : cudaErrorNotSupported; });
}

cudaError_t cudaIpcOpenMemHandle(void** d_memory, cudaIpcMemHandle_t handle, unsigned) {
  return Run([&] {
    return MayImport() ? Import(handle, current_device, d_memory) : cudaErrorMapBufferObjectFailed;
  });
}

cudaError_t cudaIpcCloseMemHandle(void* d_memory) {
  return Run([&] {
    for (int device = 0; device < TheSettings().devices; ++device) FinishDevice(device);
    return Unmap(d_memory);
  });
}

cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned flags) {
  return Run([&] { return MakeStream(current_device, flags != cudaStreamNonBlocking, stream); });
}

cudaError_t cudaStreamDestroy(cudaStream_t stream) {
  return Run([&] { return DropStream(stream); });
}

cudaError_t cudaStreamSynchronize(cudaStream_t stream) {
  return Run([&]() -> cudaError_t {
    const auto on = StreamOf(stream, current_device);
    if (on == nullptr) return cudaErrorInvalidResourceHandle;
    FinishStream(on);
    return Lost(on->device) ? cudaErrorUnknown : cudaSuccess;
  });
}

cudaError_t cudaStreamQuery(cudaStream_t stream) {
  return Run([&]() -> cudaError_t {
    static thread_local int asks = 0;
    const auto on = StreamOf(stream, current_device);
    if (on == nullptr) return cudaErrorInvalidResourceHandle;
    if (on->queued.empty() || Ask(on->queued.back(), asks)) {
      asks = 0;
      return cudaSuccess;
    }
    return cudaErrorNotReady;
  });
}

cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned) {
  return Run([&]() -> cudaError_t {
    const auto on = StreamOf(stream, current_device);
    const Event* waited = EventOf(event);
    if (on == nullptr || waited == nullptr) return cudaErrorInvalidResourceHandle;
    if (waited->recorded == nullptr || waited->recorded->done) return cudaSuccess;
    auto work = std::make_shared<Work>();
    work->after.push_back(waited->recorded);
    Queue(on, work);
    return cudaSuccess;
  });
}

cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned) {
  return Run([&] { return MakeEvent(current_device, event); });
}

cudaError_t cudaEventDestroy(cudaEvent_t event) {
  return Run([&] { return DropEvent(event); });
}

cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
  return Run([&]() -> cudaError_t {
    Event* recorded = EventOf(event);
    const auto on = StreamOf(stream, recorded == nullptr ? current_device : recorded->device);
    if (recorded == nullptr || on == nullptr || on->device != recorded->device) {
      return cudaErrorInvalidResourceHandle;
    }
    auto work = std::make_shared<Work>();
    recorded->recorded = work;
    recorded->asks = 0;
    Queue(on, work);
    return cudaSuccess;
  });
}

cudaError_t cudaEventQuery(cudaEvent_t event) {
  return Run([&]() -> cudaError_t {
    Event* asked = EventOf(event);
    if (asked == nullptr) return cudaErrorInvalidResourceHandle;
    return Ask(asked->recorded, asked->asks) ? cudaSuccess : cudaErrorNotReady;
  });
}

cudaError_t cudaEventSynchronize(cudaEvent_t event) {
  return Run([&]() -> cudaError_t {
    const Event* waited = EventOf(event);
    if (waited == nullptr) return cudaErrorInvalidResourceHandle;
    if (waited->recorded != nullptr) Finish(waited->recorded);
    return cudaSuccess;
  });
}

cudaError_t cudaEventElapsedTime(float* ms, cudaEvent_t begun, cudaEvent_t ended) {
  return Run([&]() -> cudaError_t {
    const Event* from = EventOf(begun);
    const Event* to = EventOf(ended);
    if (from == nullptr || to == nullptr || !from->recorded || !to->recorded) {
      return cudaErrorInvalidResourceHandle;
    }
    if (!from->recorded->done || !to->recorded->done) return cudaErrorNotReady;
    *ms = static_cast<float>(to->recorded->done_ns - from->recorded->done_ns) / 1e6F;
    return cudaSuccess;
  });
}
