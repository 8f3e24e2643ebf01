// The memory of a GPU that launches share. A part of chain.
#pragma once

#include <cstddef>
#include <cstdint>
#include <list>
#include <span>
#include <utility>
#include <vector>

#include "runtime/core/hash.h"
#include "runtime/core/status.h"
#include "runtime/memory/device_block.h"
#include "runtime/memory/gpu.h"

namespace patchbay::ops {

/// Parts of blocks are aligned as blocks are.
inline constexpr std::size_t kDeviceAlignment = 256;
constexpr std::size_t AlignedForDevice(std::size_t bytes) {
  return (bytes + kDeviceAlignment - 1) / kDeviceAlignment * kDeviceAlignment;
}

/// Scratch of one lane; larger means fewer launches of chains that need it.
inline constexpr std::uint64_t kPlaneBytesMax = std::uint64_t{64} << 20;

/// Blocks of values that an arena keeps from one launch to the next: lookups of colours, 0.6 MB
/// each, of which slides of one scanner share one.
inline constexpr std::size_t kKeptBlocks = 32;

/// Memory that launches need in addition to their patches: parameters on their way to the GPU,
/// scratch, and values that steps refer to. For one thread; work launched from it must have ended
/// before Begin. Move-only.
class DeviceArena {
 public:
  /// Frees all pieces for the next launches; allocates only if there was never as much.
  Status Begin(std::size_t parameter_bytes, std::uint64_t plane_bytes);
  /// Scratch for launches that need more than Begin could know; queued work keeps its own.
  Status FitPlanes(std::uint64_t plane_bytes);
  /// The address of the next upload.
  std::byte* d_next() const { return d_parameters_.d_data() + used_; }
  /// Queues the copy of parameters, and returns their address. Internal beyond the bytes given to
  /// Begin.
  StatusOr<std::byte*> Upload(std::span<const std::byte> parameters, memory::GpuStream stream);
  /// The values on the GPU that have this digest; queues their copy if they are not there yet.
  StatusOr<const std::byte*> Keep(const Digest& digest, std::span<const std::byte> values,
                                  memory::GpuStream stream);
  std::byte* d_planes() const { return d_planes_.d_data(); }
  std::uint64_t plane_bytes() const { return d_planes_.size_bytes(); }
  /// Kernels queued from it since it was made.
  std::uint64_t kernels() const { return kernels_; }
  void CountKernels(int queued) { kernels_ += static_cast<std::uint64_t>(queued); }

 private:
  memory::PinnedBuffer h_parameters_;
  memory::DeviceBlock d_parameters_, d_planes_;
  std::vector<memory::DeviceBlock> outgrown_;               ///< until the next Begin
  std::list<std::pair<Digest, memory::DeviceBlock>> kept_;  ///< used last first
  std::size_t used_ = 0;
  std::uint64_t kernels_ = 0;
};

}  // namespace patchbay::ops
