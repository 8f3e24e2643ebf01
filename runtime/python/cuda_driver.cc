#include "runtime/python/cuda_driver.h"

#include <cstring>

#include <dlfcn.h>

namespace patchbay::python {
namespace {

constexpr unsigned kPortable = 1;                ///< CU_MEMHOSTREGISTER_PORTABLE
constexpr unsigned kLazyPeerAccess = 1;          ///< CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS
constexpr unsigned kBlockingNoTiming = 1u | 2u;  ///< CU_EVENT_BLOCKING_SYNC | DISABLE_TIMING
constexpr char kLeaveOut[] = ": leave `device` out, and copy with tensor.to(device)";

struct IpcHandle {
  std::byte bytes[64];
};

}  // namespace

struct CudaDriver {
  int (*init)(unsigned) = nullptr;
  int (*error_name)(int, const char**) = nullptr;
  int (*device_count)(int*) = nullptr;
  int (*device)(int*, int) = nullptr;
  int (*device_uuid)(std::byte*, int) = nullptr;
  int (*retain_primary)(void**, int) = nullptr;
  int (*release_primary)(int) = nullptr;
  int (*push)(void*) = nullptr;
  int (*pop)(void**) = nullptr;
  int (*open_ipc)(std::uintptr_t*, IpcHandle, unsigned) = nullptr;
  int (*close_ipc)(std::uintptr_t) = nullptr;
  int (*lock_pages)(void*, std::size_t, unsigned) = nullptr;
  int (*unlock_pages)(void*) = nullptr;
  int (*make_event)(CudaEvent*, unsigned) = nullptr;
  int (*drop_event)(CudaEvent) = nullptr;
  int (*record)(CudaEvent, CudaStream) = nullptr;
  int (*await)(CudaEvent) = nullptr;
};

namespace {

template <typename Function>
void Find(void* library, const char* name, Function& function) {
  function = reinterpret_cast<Function>(dlsym(library, name));
  if (function == nullptr) {
    throw CudaError(std::string("load CUDA driver: it has no ") + name + ": it is too old" +
                    kLeaveOut);
  }
}

/// Loaded for good: a driver that was used is not unloaded.
CudaDriver Load() {
  void* const library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    throw CudaError(
        "load CUDA driver: libcuda.so.1: this machine or container has no NVIDIA driver" +
        std::string(kLeaveOut));
  }
  CudaDriver d;
  Find(library, "cuInit", d.init);
  Find(library, "cuGetErrorName", d.error_name);
  Find(library, "cuDeviceGetCount", d.device_count);
  Find(library, "cuDeviceGet", d.device);
  // For a MIG slice, version 2 names the slice as the runtime API does.
  void* const of_slices = dlsym(library, "cuDeviceGetUuid_v2");
  Find(library, of_slices != nullptr ? "cuDeviceGetUuid_v2" : "cuDeviceGetUuid", d.device_uuid);
  Find(library, "cuDevicePrimaryCtxRetain", d.retain_primary);
  Find(library, "cuDevicePrimaryCtxRelease_v2", d.release_primary);
  Find(library, "cuCtxPushCurrent_v2", d.push);
  Find(library, "cuCtxPopCurrent_v2", d.pop);
  Find(library, "cuIpcOpenMemHandle_v2", d.open_ipc);
  Find(library, "cuIpcCloseMemHandle", d.close_ipc);
  Find(library, "cuMemHostRegister_v2", d.lock_pages);
  Find(library, "cuMemHostUnregister", d.unlock_pages);
  Find(library, "cuEventCreate", d.make_event);
  Find(library, "cuEventDestroy_v2", d.drop_event);
  Find(library, "cuEventRecord", d.record);
  Find(library, "cuEventSynchronize", d.await);
  return d;
}

std::string NameOf(const CudaDriver& driver, int result) {
  const char* name = nullptr;
  if (driver.error_name(result, &name) == 0 && name != nullptr) return name;
  return "CUDA error " + std::to_string(result);
}

const CudaDriver& TheDriver() {
  static const CudaDriver driver = Load();
  return driver;
}

}  // namespace

std::shared_ptr<CudaContext> CudaContext::Retain(int device) {
  const CudaDriver& driver = TheDriver();
  std::shared_ptr<CudaContext> made(new CudaContext(driver, device));
  const std::string doing = "use device cuda:" + std::to_string(device);
  int count = 0;
  int result = driver.init(0);
  if (result == 0) result = driver.device_count(&count);
  if (result != 0) throw CudaError(doing + ": " + NameOf(driver, result) + kLeaveOut);
  if (device >= count) {
    throw CudaError(
        doing + ": this process sees " + std::to_string(count) +
        " CUDA devices, from cuda:0 on: name one of them (CUDA_VISIBLE_DEVICES may hide "
        "others)");
  }
  made->Check(driver.device(&made->handle_, device), doing.c_str());
  void* context = nullptr;
  made->Check(driver.retain_primary(&context, made->handle_), doing.c_str());
  made->context_ = context;
  return made;
}

CudaContext::~CudaContext() {
  if (context_ != nullptr) (void)driver_.release_primary(handle_);
}

template <typename Call>
int CudaContext::InContext(const Call& call) const {
  if (const int pushed = driver_.push(context_); pushed != 0) return pushed;
  const int result = call();
  void* popped = nullptr;
  (void)driver_.pop(&popped);
  return result;
}

void CudaContext::Check(int result, const char* doing) const {
  if (result == 0) return;
  throw CudaError(std::string(doing) + ": cuda:" + std::to_string(device_) + ": " +
                  NameOf(driver_, result));
}

std::string CudaContext::Uuid() const {
  static constexpr char kDigits[] = "0123456789abcdef";
  std::array<std::byte, 16> bytes{};
  Check(driver_.device_uuid(bytes.data(), handle_), "name device");
  std::string text = "GPU-";
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    if (i == 4 || i == 6 || i == 8 || i == 10) text.push_back('-');
    text.push_back(kDigits[std::to_integer<unsigned>(bytes[i]) >> 4]);
    text.push_back(kDigits[std::to_integer<unsigned>(bytes[i]) & 15]);
  }
  return text;
}

std::byte* CudaContext::OpenMemory(const std::array<std::byte, 64>& ipc_handle) const {
  IpcHandle handle;
  std::memcpy(&handle, ipc_handle.data(), sizeof handle);
  std::uintptr_t address = 0;
  const int result = InContext([&] { return driver_.open_ipc(&address, handle, kLazyPeerAccess); });
  if (result != 0) {
    throw CudaError("map slots of cuda:" + std::to_string(device_) + ": " +
                    NameOf(driver_, result) +
                    ": this process may not share the GPU's memory with the client process beside "
                    "it" +
                    kLeaveOut);
  }
  return reinterpret_cast<std::byte*>(address);
}

void CudaContext::CloseMemory(std::byte* memory) const {
  (void)InContext([&] { return driver_.close_ipc(reinterpret_cast<std::uintptr_t>(memory)); });
}

void CudaContext::LockPages(std::span<std::byte> memory) const {
  Check(InContext([&] { return driver_.lock_pages(memory.data(), memory.size(), kPortable); }),
        "page-lock ring");
}

void CudaContext::UnlockPages(std::byte* memory) const {
  (void)InContext([&] { return driver_.unlock_pages(memory); });
}

CudaEvent CudaContext::Record(CudaStream stream) const {
  CudaEvent event = nullptr;
  const int made = InContext([&] {
    const int result = driver_.make_event(&event, kBlockingNoTiming);
    return result != 0 ? result : driver_.record(event, stream);
  });
  if (made != 0 && event != nullptr) (void)driver_.drop_event(event);
  Check(made, "record event");
  return event;
}

void CudaContext::AwaitAndDestroy(CudaEvent event) const {
  (void)InContext([&] {
    (void)driver_.await(event);  // fails for a device that is lost: nothing of it runs any more
    return driver_.drop_event(event);
  });
}

}  // namespace patchbay::python
