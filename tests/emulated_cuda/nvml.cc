// The part of NVML that runtime/memory finds by dlopen. It is part of the program here.
#include <algorithm>
#include <cstdint>
#include <cstring>
#include <mutex>
#include <string>
#include <vector>

#include "tests/emulated_cuda/devices.h"
#include "tests/emulated_cuda/emulation.h"
#include "tests/emulated_cuda/memory.h"

namespace {

using namespace patchbay::emulated_cuda;  // NOLINT: what follows is C's API

constexpr int kSuccess = 0, kNotFound = 6, kInsufficientSize = 7;

struct Listed {
  unsigned pid;
  unsigned long long used_bytes;
  unsigned gpu_instance, compute_instance;
};

std::string UuidText(int device) {
  static constexpr char kHex[] = "0123456789abcdef";
  const cudaUUID_t uuid = UuidOf(device);
  std::string text = "GPU-";
  for (int i = 0; i < 16; ++i) {
    if (i == 4 || i == 6 || i == 8 || i == 10) text.push_back('-');
    text.push_back(kHex[static_cast<unsigned char>(uuid.bytes[i]) >> 4]);
    text.push_back(kHex[static_cast<unsigned char>(uuid.bytes[i]) & 15]);
  }
  return text;
}

}  // namespace

extern "C" {

__attribute__((visibility("default"))) int nvmlInit_v2() {
  return TheSettings().devices > 0 ? kSuccess : kNotFound;
}

__attribute__((visibility("default"))) int nvmlDeviceGetHandleByUUID(const char* uuid,
                                                                     void** device) {
  for (int i = 0; i < TheSettings().devices; ++i) {
    if (UuidText(i) != uuid) continue;
    *device = reinterpret_cast<void*>(static_cast<std::uintptr_t>(i) + 1);
    return kSuccess;
  }
  return kNotFound;
}

__attribute__((visibility("default"))) int nvmlDeviceGetComputeRunningProcesses_v3(void* device,
                                                                                   unsigned* count,
                                                                                   Listed* out) {
  const std::lock_guard lock(TheLock());
  const std::vector<pid_t> pids =
      ProcessesOf(static_cast<int>(reinterpret_cast<std::uintptr_t>(device)) - 1);
  const unsigned room = *count;
  *count = static_cast<unsigned>(pids.size());
  if (room < pids.size()) return kInsufficientSize;
  for (std::size_t i = 0; i < pids.size(); ++i) {
    out[i] = {static_cast<unsigned>(pids[i]), 0, 0, 0};
  }
  return kSuccess;
}

}  // extern "C"
