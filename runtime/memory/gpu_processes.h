// The processes that a GPU still works for: a driver may still be closing the context of a dead
// process, whose last writes may come after its end.
#pragma once

#include <cstdint>
#include <string_view>

struct nvmlDevice_st;

namespace patchbay::memory {

/// Without NVML, how long after its end a process may still write to device memory.
inline constexpr std::int64_t kDriverGraceMs = 500;

/// One GPU's list of processes, from NVML, which is loaded on first use. A value; copies share
/// nothing.
class GpuProcesses {
 public:
  /// Where NVML is missing, or does not know the GPU, time alone decides.
  static GpuProcesses Of(std::string_view gpu_uuid);

  /// Whether a process that ended `ended_ms` ago can no longer write to this GPU: NVML does not
  /// list it. A list without the calling process, which uses the GPU, is of another PID namespace
  /// and useless: then, as without NVML, kDriverGraceMs must have passed.
  bool HasLeft(std::int64_t pid, std::int64_t ended_ms) const;

 private:
  nvmlDevice_st* device_ = nullptr;
};

}  // namespace patchbay::memory
