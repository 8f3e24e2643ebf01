#include "runtime/memory/gpu_processes.h"

#include <algorithm>
#include <string>
#include <type_traits>
#include <vector>

#include <dlfcn.h>
#include <unistd.h>

#if PATCHBAY_CUDA_API
#include <cuda_runtime_api.h>
#endif

namespace patchbay::memory {
namespace {

/// nvmlProcessInfo_t of the second version, which the third of the call takes.
struct GpuUser {
  unsigned pid;
  unsigned long long used_bytes;
  unsigned gpu_instance, compute_instance;
};
constexpr int kSuccess = 0, kInsufficientSize = 7;
/// More than run on any GPU at a time.
constexpr unsigned kMaxListed = 4'096;

struct Nvml {
  int (*init)() = nullptr;
  int (*device_of_uuid)(const char*, nvmlDevice_st**) = nullptr;
  int (*list)(nvmlDevice_st*, unsigned* count, GpuUser*) = nullptr;

  bool whole() const { return init != nullptr && device_of_uuid != nullptr && list != nullptr; }
};

void* OpenLibrary() {
#if defined(PATCHBAY_EMULATED_CUDA)
  return ::dlopen(nullptr, RTLD_NOW);  // it is part of the program
#else
  return ::dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL);
#endif
}

Nvml Load() {
  Nvml nvml;
  void* library = OpenLibrary();
  if (library == nullptr) return nvml;
  const auto find = [library](const char* name, auto& function) {
    function =
        reinterpret_cast<std::remove_reference_t<decltype(function)>>(::dlsym(library, name));
  };
  find("nvmlInit_v2", nvml.init);
  find("nvmlDeviceGetHandleByUUID", nvml.device_of_uuid);
  find("nvmlDeviceGetComputeRunningProcesses_v3", nvml.list);
  if (!nvml.whole() || nvml.init() != kSuccess) return {};
  return nvml;
}

const Nvml& TheNvml() {
  static const Nvml nvml = Load();  // stays loaded: it is shut down by the process's end
  return nvml;
}

}  // namespace

GpuProcesses GpuProcesses::Of(std::string_view gpu_uuid) {
  GpuProcesses made;
  const Nvml& nvml = TheNvml();
  if (!nvml.whole()) return made;
  if (nvml.device_of_uuid(std::string(gpu_uuid).c_str(), &made.device_) != kSuccess) {
    made.device_ = nullptr;
  }
  return made;
}

bool GpuProcesses::HasLeft(std::int64_t pid, std::int64_t ended_ms) const {
  const bool late = ended_ms >= kDriverGraceMs;
  if (device_ == nullptr) return late;
  std::vector<GpuUser> listed(64);
  unsigned count = 64;
  int result = TheNvml().list(device_, &count, listed.data());
  if (result == kInsufficientSize && count <= kMaxListed) {
    count += 64;  // some may start meanwhile
    listed.resize(count);
    result = TheNvml().list(device_, &count, listed.data());
  }
  if (result != kSuccess || count > listed.size()) return late;
  const auto lists = [&](std::int64_t wanted) {
    return std::any_of(listed.begin(), listed.begin() + count,
                       [wanted](const GpuUser& process) { return process.pid == wanted; });
  };
  return lists(getpid()) ? !lists(pid) : late;
}

}  // namespace patchbay::memory
