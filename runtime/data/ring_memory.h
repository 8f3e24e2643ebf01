// Where a ring's bytes live: one dedicated, pre-faulted memfd, and for device slots one plain
// device block beside it (the memfd is then the pinned staging area).
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "runtime/base/file.h"
#include "runtime/base/status.h"

namespace patchbay::data {

inline constexpr std::uint64_t kSlotAlignment = 4096;  ///< a slot starts on a page
inline constexpr std::uint64_t kMaxRingBytes = std::uint64_t{1} << 42;

/// Slot `i` of `size_bytes` lies at i * SlotStride(size_bytes).
constexpr std::uint64_t SlotStride(std::uint64_t size_bytes) {
  return (size_bytes + kSlotAlignment - 1) / kSlotAlignment * kSlotAlignment;
}

/// A shared mapping of a memfd. Unmapped at destruction; the memory lives as long as any process
/// maps it or holds the descriptor.
class SharedMapping {
 public:
  SharedMapping() = default;
  SharedMapping(SharedMapping&& other) noexcept;
  SharedMapping& operator=(SharedMapping&& other) noexcept;
  ~SharedMapping();
  /// Read-write, not inherited by children of fork. `size_bytes` must not exceed the file.
  static StatusOr<SharedMapping> Map(int fd, std::uint64_t size_bytes);
  std::span<std::byte> bytes() const { return {data_, static_cast<std::size_t>(size_bytes_)}; }

 private:
  std::byte* data_ = nullptr;
  std::uint64_t size_bytes_ = 0;
};

class RingMemory {
 public:
  virtual ~RingMemory() = default;
  /// All slots, host side.
  virtual std::span<std::byte> host() const = 0;
  /// The memfd that peers map.
  virtual int host_fd() const = 0;
  /// Device base address, or null for host slots.
  virtual std::byte* device() const { return nullptr; }
  /// For a peer on the same node: opaque handle and the device's UUID; empty for host slots.
  virtual std::string device_handle() const { return {}; }
  virtual std::string device_uuid() const { return {}; }
  /// Host range to the same place on the device; returns once it is there. No-op for host slots.
  virtual Status StageSync(std::uint64_t offset_bytes, std::uint64_t size_bytes);
  /// Copies inside the memory the consumer reads.
  virtual Status CopySync(std::uint64_t from, std::uint64_t to, std::uint64_t size_bytes) = 0;
};

/// A sealed memfd (its size can no longer change), every page touched, not inherited by children.
StatusOr<std::unique_ptr<RingMemory>> MakeHostRingMemory(std::uint64_t size_bytes);

}  // namespace patchbay::data
