// Private host memory: page-aligned, zeroed, backed by huge pages where the kernel has them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "runtime/core/status.h"

namespace patchbay::memory {

/// Owns an anonymous mapping. Move-only. Its pages are touched when it is made, so that its use
/// neither faults nor fails.
class HostBuffer {
 public:
  HostBuffer() = default;
  HostBuffer(HostBuffer&& other) noexcept;
  HostBuffer& operator=(HostBuffer&& other) noexcept;
  ~HostBuffer();

  /// ResourceExhausted when the memory is not there; InvalidArgument for 0 or more than
  /// kMaxBlockBytes (memfd_block.h).
  static StatusOr<HostBuffer> Allocate(std::uint64_t size_bytes);

  std::byte* data() const { return data_; }
  std::uint64_t size_bytes() const { return size_bytes_; }
  std::span<std::byte> bytes() const { return {data_, static_cast<std::size_t>(size_bytes_)}; }

 private:
  std::byte* data_ = nullptr;
  std::uint64_t size_bytes_ = 0;
};

}  // namespace patchbay::memory
