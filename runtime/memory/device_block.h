// Memory on a GPU: plain cudaMalloc blocks (CUDA IPC and registration expose whole allocations, so
// a ring is one block of its own), their sharing between processes, and pinned host memory.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "runtime/core/status.h"
#include "runtime/memory/gpu.h"

namespace patchbay::memory {

/// The values with which another process on the same machine maps a DeviceBlock. A plain value: it
/// may travel in a message.
struct DeviceBlockHandle {
  std::array<std::byte, 64> ipc{};  ///< cudaIpcMemHandle_t
  std::string gpu_uuid;
  std::uint64_t size_bytes = 0;
};

/// Owns device memory of one GPU, or a mapping of another process's. Move-only.
class DeviceBlock {
 public:
  DeviceBlock() = default;
  DeviceBlock(DeviceBlock&& other) noexcept;
  DeviceBlock& operator=(DeviceBlock&& other) noexcept;
  ~DeviceBlock();

  /// On the calling thread's GPU. ResourceExhausted when its memory is full; Unimplemented in a
  /// build without CUDA.
  static StatusOr<DeviceBlock> Allocate(std::uint64_t size_bytes);
  /// Maps a block that another process exported (in the same process CUDA refuses). The exporter
  /// must keep its block until this one is destroyed.
  static StatusOr<DeviceBlock> Import(const DeviceBlockHandle& handle);

  StatusOr<DeviceBlockHandle> Export() const;
  /// Gives the block up without freeing it.
  void KeepUntilExit() { d_data_ = nullptr; }

  std::byte* d_data() const { return d_data_; }
  std::uint64_t size_bytes() const { return size_bytes_; }
  int gpu() const { return gpu_; }

 private:
  void Release();

  std::byte* d_data_ = nullptr;
  std::uint64_t size_bytes_ = 0;
  int gpu_ = -1;
  bool imported_ = false;
};

/// Owns page-locked host memory that every GPU can copy from and to at full speed. Move-only.
class PinnedBuffer {
 public:
  PinnedBuffer() = default;
  PinnedBuffer(PinnedBuffer&& other) noexcept;
  PinnedBuffer& operator=(PinnedBuffer&& other) noexcept;
  ~PinnedBuffer();

  static StatusOr<PinnedBuffer> Allocate(std::uint64_t size_bytes);
  std::span<std::byte> bytes() const { return {data_, static_cast<std::size_t>(size_bytes_)}; }

 private:
  std::byte* data_ = nullptr;
  std::uint64_t size_bytes_ = 0;
};

/// Page-locks memory that exists already (a MemfdBlock) while the object lives. The
/// memory must outlive it.
class PinnedRegistration {
 public:
  PinnedRegistration() = default;
  PinnedRegistration(PinnedRegistration&& other) noexcept;
  PinnedRegistration& operator=(PinnedRegistration&& other) noexcept;
  ~PinnedRegistration();

  static StatusOr<PinnedRegistration> Register(std::span<std::byte> memory);

 private:
  void* registered_ = nullptr;
};

/// Copies in stream order; the host side should be pinned (otherwise CUDA makes it wait). None
/// blocks for pinned memory; keep both sides until the stream has passed.
Status CopyToDevice(std::byte* d_to, std::span<const std::byte> h_from, GpuStream stream);
Status CopyToHost(std::span<std::byte> h_to, const std::byte* d_from, GpuStream stream);
Status FillDevice(std::byte* d_to, std::uint8_t value, std::uint64_t size_bytes, GpuStream stream);

}  // namespace patchbay::memory
