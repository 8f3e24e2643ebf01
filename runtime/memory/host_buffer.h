// Private host memory: page-aligned, zeroed, backed by huge pages where the kernel has them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <stop_token>
#include <string_view>
#include <thread>

#include "runtime/core/status.h"
#include "runtime/os/file.h"

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
  /// kMaxBlockBytes.
  static StatusOr<HostBuffer> Allocate(std::uint64_t size_bytes);

  std::byte* data() const { return data_; }
  std::uint64_t size_bytes() const { return size_bytes_; }
  std::span<std::byte> bytes() const { return {data_, static_cast<std::size_t>(size_bytes_)}; }

 private:
  std::byte* data_ = nullptr;
  std::uint64_t size_bytes_ = 0;
};

// Page table entries made before they are needed: a ring's first round would otherwise take one
// fault for every page, while the trainer waits.

/// Maps the pages of shared memory for writing: the first gigabyte before the constructor returns
/// (some 50 ms for a quarter of it), the rest on a thread of its own. Their content stays, also
/// when others write to them at the same time. Only a hint: kernels before 5.14 and machines
/// without a thread to spare map on first use, as ever. Stops when destroyed, which must be before
/// the memory is unmapped.
class Prefault {
 public:
  Prefault() = default;
  explicit Prefault(std::span<std::byte> bytes);

 private:
  std::jthread thread_;
};

// Memory that two processes share: a sealed memfd, mapped. A trainer makes the block and hands its
// descriptor to workers over a Unix socket; nothing has a name in a file system, so nothing is left
// behind when the processes die.

/// No single block is larger: a size beyond it is a broken or hostile request.
inline constexpr std::uint64_t kMaxBlockBytes = std::uint64_t{1} << 40;

/// A shared mapping of a whole memfd. Move-only; unmaps and closes when destroyed, which does not
/// take the memory from other processes that mapped it.
class MemfdBlock {
 public:
  MemfdBlock() = default;
  MemfdBlock(MemfdBlock&& other) noexcept;
  MemfdBlock& operator=(MemfdBlock&& other) noexcept;
  ~MemfdBlock();

  /// A new zeroed block whose size can never change again (F_SEAL_SHRINK, F_SEAL_GROW,
  /// F_SEAL_SEAL). `label` shows in /proc/<pid>/maps only. ResourceExhausted when the memory is not
  /// there: blocks of some size are looked for before each piece that is taken, and every page is
  /// touched, so that a lack is an error here and not a SIGBUS later.
  static StatusOr<MemfdBlock> Create(std::string_view label, std::uint64_t size_bytes);

  /// Maps a descriptor received from a peer. InvalidArgument unless it is a memfd of exactly
  /// `size_bytes` whose size is sealed (an unsealed peer could shrink it and crash us).
  static StatusOr<MemfdBlock> Map(UniqueFd fd, std::uint64_t size_bytes);

  std::byte* data() const { return data_; }
  std::uint64_t size_bytes() const { return size_bytes_; }
  std::span<std::byte> bytes() const { return {data_, static_cast<std::size_t>(size_bytes_)}; }
  /// To hand over with SCM_RIGHTS; stays ours.
  int fd() const { return fd_.get(); }
  bool valid() const { return data_ != nullptr; }

 private:
  void Release();

  UniqueFd fd_;
  std::byte* data_ = nullptr;
  std::uint64_t size_bytes_ = 0;
};

}  // namespace patchbay::memory
