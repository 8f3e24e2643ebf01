// Where a ring's bytes live: one dedicated, pre-faulted memfd, and for device slots one plain
// device block beside it (the memfd is then the pinned staging area).
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>

#include "runtime/base/status.h"
#include "runtime/memory/device_block.h"

namespace patchbay::data {

inline constexpr std::uint64_t kSlotAlignment = 4096;  ///< a slot starts on a page

/// Slot `i` of `size_bytes` lies at i * SlotStride(size_bytes).
constexpr std::uint64_t SlotStride(std::uint64_t size_bytes) {
  return (size_bytes + kSlotAlignment - 1) / kSlotAlignment * kSlotAlignment;
}

class RingMemory {
 public:
  virtual ~RingMemory() = default;
  /// All slots, host side.
  virtual std::span<std::byte> host() const = 0;
  /// The memfd that peers map.
  virtual int host_fd() const = 0;
  /// Device base address, or null for host slots.
  virtual std::byte* device() const { return nullptr; }
  /// What a GPU worker on the same node maps the device block with; nullopt for host slots.
  virtual std::optional<memory::DeviceBlockHandle> device_handle() const { return std::nullopt; }
  /// Host range to the same place on the device; returns once it is there. No-op for host slots.
  virtual Status StageSync(std::uint64_t offset_bytes, std::uint64_t size_bytes);
  /// Copies inside the memory the consumer reads.
  virtual Status CopySync(std::uint64_t from, std::uint64_t to, std::uint64_t size_bytes) = 0;
};

/// A sealed memfd with every page touched.
StatusOr<std::unique_ptr<RingMemory>> MakeHostRingMemory(std::uint64_t size_bytes);

/// A plain device block on that GPU, and a page-locked memfd of the same size beside it, where CPU
/// workers and other nodes deliver. Unimplemented in a build without CUDA.
StatusOr<std::unique_ptr<RingMemory>> MakeDeviceRingMemory(int gpu, std::uint64_t size_bytes);

/// slots * SlotStride, or InvalidArgument when that is no size a ring may have.
StatusOr<std::uint64_t> RingBytes(std::uint32_t slots, std::uint64_t slot_bytes);

}  // namespace patchbay::data
