// GPUs of this machine, their streams and events. In a build without CUDA, and on a machine without
// a driver, there are none: ListGpus is empty and everything else returns Unimplemented or
// Unavailable.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/core/status.h"

struct CUstream_st;
struct CUevent_st;

namespace patchbay::memory {

/// The same type as cudaStream_t, named here so that no CUDA header is needed. nullptr is the
/// default stream.
using GpuStream = CUstream_st*;

/// Compute mode: whether processes may share a GPU.
enum class GpuSharing : std::uint8_t { kShared, kExclusive, kProhibited };

struct GpuDescription {
  int index = 0;     ///< CUDA's, in this process
  std::string uuid;  ///< "GPU-xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx", the same in every process
  std::string name;  ///< "NVIDIA H200"
  std::uint64_t memory_bytes = 0;
  int compute_major = 0, compute_minor = 0;
  GpuSharing sharing = GpuSharing::kShared;
  bool is_mig_slice = false;  ///< a part of a GPU that is split by MIG
};

/// True when the CUDA runtime was compiled in; a driver may still be missing.
bool BuiltWithCuda();

/// The answer of a build without it: "doing: this build has no CUDA".
inline Status NoCuda(std::string_view doing) {
  return Unimplemented(doing, ": this build has no CUDA");
}

/// Every GPU this process may use; empty without CUDA, driver or device. `reason`, when given,
/// receives the reason for an empty list, and a remedy.
std::vector<GpuDescription> ListGpus(std::string* reason = nullptr);

/// The index of the GPU of that UUID; NotFound when this process does not see it.
StatusOr<int> GpuIndexOf(std::string_view uuid);

struct GpuMemory {
  std::uint64_t free_bytes = 0, total_bytes = 0;
};
/// The memory of a GPU; selects it for the calling thread.
StatusOr<GpuMemory> MemoryOf(int index);

/// Makes `index` the calling thread's device.
Status SelectGpu(int index);

/// Whether the GPU of that UUID still takes calls of this process. After some errors it never does
/// again (a kernel that failed, a device that is lost): only another process can go on.
Status GpuAnswers(std::string_view uuid);

/// Owns a non-blocking stream of the device that was selected when it was made.
class OwnedGpuStream {
 public:
  OwnedGpuStream() = default;
  OwnedGpuStream(OwnedGpuStream&& other) noexcept;
  OwnedGpuStream& operator=(OwnedGpuStream&& other) noexcept;
  ~OwnedGpuStream();

  static StatusOr<OwnedGpuStream> Create();
  GpuStream get() const { return stream_; }
  /// Blocks until all work of the stream is done; reports errors of earlier work.
  Status WaitSync() const;

 private:
  GpuStream stream_ = nullptr;
};

/// Owns an event, without timing unless it is made with CreateTimed.
class GpuEvent {
 public:
  GpuEvent() = default;
  GpuEvent(GpuEvent&& other) noexcept;
  GpuEvent& operator=(GpuEvent&& other) noexcept;
  ~GpuEvent();

  static StatusOr<GpuEvent> Create();
  static StatusOr<GpuEvent> CreateTimed();
  /// Marks the work that is in `stream` now. Does not block.
  Status Record(GpuStream stream);
  /// Whether everything before the last Record is done. Does not block.
  StatusOr<bool> Passed() const;
  /// Blocks until it is.
  Status WaitSync() const;
  /// Time on the device between both, which are timed, of one device, recorded and passed.
  StatusOr<std::int64_t> NsSince(const GpuEvent& earlier) const;

 private:
  CUevent_st* event_ = nullptr;
};

}  // namespace patchbay::memory
