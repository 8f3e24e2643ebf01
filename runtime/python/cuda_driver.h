// The part of CUDA's driver API that a trainer's process needs, found by dlopen and called in the
// primary context of a device, which is that of PyTorch and of every other user of the runtime API.
// No CUDA header, no link; no Python.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <stdexcept>
#include <string>

namespace patchbay::python {

using CudaStream = void*;  ///< CUstream; null and 1 are the legacy default stream
using CudaEvent = void*;   ///< CUevent

/// No driver, no such device, or a call that failed. The text names the call and a remedy.
class CudaError : public std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// The functions of libcuda.so.1.
struct CudaDriver;

/// The primary context of one device, as long as this lives. Calls are safe from any thread, and
/// leave the thread's current context as it was. Useless in a forked child, as CUDA is.
class CudaContext {
 public:
  /// Throws CudaError.
  static std::shared_ptr<CudaContext> Retain(int device);
  ~CudaContext();
  CudaContext(const CudaContext&) = delete;
  CudaContext& operator=(const CudaContext&) = delete;

  int device() const { return device_; }  ///< ordinal in this process
  /// "GPU-xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx", the same in every process.
  std::string Uuid() const;

  /// Maps a device block of another process; it must live until CloseMemory. Throws CudaError.
  std::byte* OpenMemory(const std::array<std::byte, 64>& ipc_handle) const;
  /// Waits for the work that is queued on it.
  void CloseMemory(std::byte* memory) const;
  /// Page-locks memory until UnlockPages. Throws CudaError.
  void LockPages(std::span<std::byte> memory) const;
  void UnlockPages(std::byte* memory) const;

  /// An event behind the work that is in `stream` now. Does not block. Throws CudaError.
  CudaEvent Record(CudaStream stream) const;
  /// Blocks until that work is done, or its device is lost; the event is gone then.
  void AwaitAndDestroy(CudaEvent event) const;

 private:
  CudaContext(const CudaDriver& driver, int device) : driver_(driver), device_(device) {}
  template <typename Call>
  int InContext(const Call& call) const;
  void Check(int result, const char* doing) const;

  const CudaDriver& driver_;
  const int device_;
  int handle_ = 0;           ///< CUdevice
  void* context_ = nullptr;  ///< CUcontext
};

}  // namespace patchbay::python
