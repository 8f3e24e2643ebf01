// The memory of a ring: one dedicated, pre-faulted memfd, and for device slots also one plain
// device block (the memfd is then the pinned staging area).
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>

#include "runtime/core/status.h"
#include "runtime/memory/device_block.h"
#include "runtime/model/stream/slot_layout.h"

namespace patchbay::data {

/// Bytes of a ring: its slots' blocks one after another (see SlotLayout).
struct RingBytes {
  std::uint64_t host = 0;
  std::uint64_t device = 0;  ///< 0 for host slots
};

/// InvalidArgument when that is not a size a ring may have.
StatusOr<RingBytes> RingBytesOf(const SlotLayout& layout, std::uint32_t slots);

/// Owns the slots' memory. On a device the host side is its staging area.
class RingMemory {
 public:
  virtual ~RingMemory() = default;
  /// All slots, host side.
  virtual std::span<std::byte> host() const = 0;
  /// The memfd that peers map.
  virtual int host_fd() const = 0;
  /// Device base address, or null for host slots.
  virtual std::byte* device() const { return nullptr; }
  /// The handle with which a GPU worker on the same node maps the device block; nullopt for host
  /// slots.
  virtual std::optional<memory::DeviceBlockHandle> device_handle() const { return std::nullopt; }
  /// Device memory is not freed by the destructor: a process may have it open still.
  virtual void KeepUntilExit() {}
  /// Copies bytes at `h_from` of the host memory to `d_to` on the device; returns when the copy is
  /// complete. Unimplemented for host slots.
  virtual Status StageSync(std::uint64_t h_from, std::uint64_t d_to, std::uint64_t size_bytes);
  /// Copies on the device, by way of the host memory at `h_by`. Unimplemented for host slots.
  virtual Status MoveSync(std::uint64_t d_from, std::uint64_t h_by, std::uint64_t d_to,
                          std::uint64_t size_bytes);
};

/// A sealed memfd with every page touched.
StatusOr<std::unique_ptr<RingMemory>> MakeHostRingMemory(std::uint64_t size_bytes);

/// A plain device block on that GPU and a page-locked memfd, which holds the staging area for CPU
/// workers and other nodes, and the arrays that stay in host memory. Unimplemented in a build
/// without CUDA.
StatusOr<std::unique_ptr<RingMemory>> MakeDeviceRingMemory(int gpu, const RingBytes& bytes);

}  // namespace patchbay::data
