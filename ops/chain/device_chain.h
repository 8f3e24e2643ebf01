// A chain on a GPU: the same formulas in the same order as on the CPU, hence the same bits, for
// many patches a launch.
#pragma once

#include <cstddef>
#include <cstdint>
#include <list>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "ops/chain/chain.h"
#include "ops/chain/chain_kernel.h"
#include "runtime/base/random.h"
#include "runtime/base/status.h"
#include "runtime/memory/device_block.h"
#include "runtime/memory/gpu.h"

namespace patchbay::ops {

/// Colour lookups that a room keeps from one launch to the next, 0.6 MB each; slides of one scanner
/// share one.
inline constexpr std::size_t kRoomLookups = 32;

/// One patch of a batch on the GPU.
struct DevicePatch {
  /// (source_extent(), channels) in source_dtype, contiguous, aligned to the element.
  const std::byte* d_source = nullptr;
  std::byte* d_out = nullptr;  ///< patch_bytes(), aligned to the element
  DrawKey key;
  ImageColours colours = {};  ///< as Chain::Run takes them; read during the call
};

/// The labels of one patch on the GPU.
struct DeviceLabels {
  const std::byte* d_source = nullptr;  ///< (height, width) of uint8 of source_extent()
  std::byte* d_out = nullptr;           ///< patch.y x patch.x bytes
  DrawKey key;
};

/// What launches need beside their patches: parameters on their way to the GPU, scratch, and the
/// colour lookups of images. Of one thread; what was launched from it must have ended before
/// DeviceChain::Begin. Move-only.
class DeviceRoom {
 public:
  /// Makes room; allocates only where there was never so much.
  Status Begin(std::size_t parameter_bytes, std::uint64_t plane_bytes);
  /// Queues the copy of parameters, and says where they will be. Internal above what Begin said.
  StatusOr<std::byte*> Upload(std::span<const std::byte> parameters, memory::GpuStream stream);
  /// The nodes of a lookup on the GPU; queues their copy where they are not there yet.
  StatusOr<const IccNode*> Upload(const IccLookup& lookup, memory::GpuStream stream);
  std::byte* d_planes() const { return d_planes_.d_data(); }
  /// Kernels queued from it since it was made.
  std::uint64_t kernels() const { return kernels_; }
  void CountKernels(int queued) { kernels_ += static_cast<std::uint64_t>(queued); }

 private:
  memory::PinnedBuffer h_parameters_;
  memory::DeviceBlock d_parameters_, d_planes_;
  std::list<std::pair<Digest, memory::DeviceBlock>> lookups_;  ///< used last first
  std::size_t used_ = 0;
  std::uint64_t kernels_ = 0;
};

/// A compiled chain on one GPU. Move-only.
class DeviceChain {
 public:
  /// Uploads to the calling thread's GPU in the order of `stream`; keeps what it needs of `chain`.
  /// Unimplemented without CUDA, and for chains of volumes.
  static StatusOr<DeviceChain> Create(const Chain& chain, memory::GpuStream stream);

  /// Makes `room` ready for launches of `patches` patches and as many labels in all.
  Status Begin(DeviceRoom& room, std::size_t patches) const;

  /// Queues the kernels that make `patches`; does not synchronise. Same bits as Chain::Run.
  /// InvalidArgument for a patch without memory or without a fit that the chain needs.
  Status Launch(std::span<const DevicePatch> patches, DeviceRoom& room,
                memory::GpuStream stream) const;
  /// The geometry alone: same bytes as Chain::RunLabels. InvalidArgument for patches deeper than 1.
  Status LaunchLabels(std::span<const DeviceLabels> labels, DeviceRoom& room,
                      memory::GpuStream stream) const;

 private:
  Status Check(const DevicePatch& patch) const;
  SliceShape Shape() const;
  std::uint64_t SliceSourceBytes() const;
  std::uint64_t SliceBytes() const;
  std::uint64_t PlaneBytes() const;
  int PlanesAtOnce() const;
  Status LaunchMoved(std::span<const DevicePatch> patches, DeviceRoom& room,
                     memory::GpuStream stream) const;
  Status AddSlices(const DevicePatch& patch, DeviceRoom& room, memory::GpuStream stream,
                   std::vector<FloatSlice>& slices) const;
  FloatLaunch Program() const;
  Status LaunchInFloat(std::span<const DevicePatch> patches, DeviceRoom& room,
                       memory::GpuStream stream) const;

  std::unique_ptr<const Chain> chain_;
  memory::DeviceBlock program_;  ///< the tables, or the steps of a chain that works value by value
};

}  // namespace patchbay::ops
