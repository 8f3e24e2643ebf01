// A chain on a GPU: the same formulas in the same order as on the CPU, hence the same bits, for
// many patches a launch.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "ops/chain/chain.h"
#include "ops/chain/chain_kernel.h"
#include "ops/chain/device_arena.h"
#include "runtime/core/random.h"
#include "runtime/core/status.h"
#include "runtime/memory/device_block.h"
#include "runtime/memory/gpu.h"

namespace patchbay::ops {

/// One patch of a batch on the GPU.
struct DevicePatch {
  /// (source_extent(), channels) in source_dtype, contiguous, aligned to the element; for chains of
  /// volumes SourceExtent(key, facts).
  const std::byte* d_source = nullptr;
  std::byte* d_out = nullptr;  ///< patch_bytes(), aligned to the element
  DrawKey key;
  ImageColours colours = {};     ///< as Chain::Run takes them; read during the call
  plan::VolumeFacts facts = {};  ///< facts of its image, for chains of volumes
};

/// The labels of one patch on the GPU.
struct DeviceLabels {
  const std::byte* d_source = nullptr;  ///< uint8, of the same extent as the image's
  std::byte* d_out = nullptr;           ///< one byte per voxel of the patch
  DrawKey key;
  plan::VolumeFacts facts = {};
};

/// A compiled chain on one GPU. Move-only.
class DeviceChain {
 public:
  /// Uploads to the calling thread's GPU in the order of `stream`; copies the parts of `chain` that
  /// it needs. Unimplemented without CUDA.
  static StatusOr<DeviceChain> Create(const Chain& chain, memory::GpuStream stream);

  /// Prepares `arena` for launches of `patches` patches, and as many labels, in all.
  Status Begin(DeviceArena& arena, std::size_t patches) const;

  /// Queues the kernels that make `patches`; does not synchronise. Same bits as Chain::Run.
  /// InvalidArgument for a patch without memory or without a fit that the chain needs.
  Status Launch(std::span<const DevicePatch> patches, DeviceArena& arena,
                memory::GpuStream stream) const;
  /// Applies the geometry to labels, with the same bytes as Chain::RunLabels. InvalidArgument for
  /// patches deeper than 1, except in chains of volumes.
  Status LaunchLabels(std::span<const DeviceLabels> labels, DeviceArena& arena,
                      memory::GpuStream stream) const;

 private:
  Status Check(const DevicePatch& patch) const;
  /// Launches the chain as tables.
  Status LaunchMoved(std::span<const DevicePatch> patches, DeviceArena& arena,
                     memory::GpuStream stream) const;

  std::unique_ptr<const Chain> chain_;
  memory::DeviceBlock table_;
};

}  // namespace patchbay::ops
