// Patches of one stream on their way over a GPU: decoded one by one, launched together, ended
// together. Copies of one lane overlap kernels of another.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "ops/chain/device_chain.h"
#include "runtime/memory/device_block.h"
#include "runtime/memory/gpu.h"
#include "workers/stream/label_arrays.h"
#include "workers/stream/patch_reader.h"
#include "workers/stream/tile_decoder.h"

namespace patchbay::workers {

/// Patches of one lane; fewer where they are large.
inline constexpr std::size_t kLanePatchesMax = 64;
/// Bytes of a lane's tiles, and of its finished patches: larger means larger launches, and more
/// pinned and device memory.
inline constexpr std::size_t kLaneBytesMax = std::size_t{64} << 20;

/// The memory and the CUDA stream of some patches. One thread; its GPU is selected. Allocates for
/// the first patches of a stream and not again.
class GpuLane {
 public:
  Status Open();

  /// Readies an empty lane for patches of a stream.
  Status Begin(const StreamContext& context);
  /// How many patches of it fit.
  std::size_t capacity() const { return capacity_; }

  /// Decodes a patch into the lane and writes its arrays that lie in host memory. Queues nothing.
  Status Stage(const FetchedPatch& patch, TileDecoder& decoder, LabelArrays& labels);
  /// The lane's, after it was staged.
  void Add(std::unique_ptr<FetchedPatch> patch);

  /// Queues everything that turns the staged patches into finished ones in their windows: one copy,
  /// one launch. Does not synchronise. After an error something may be queued still.
  Status Launch(const ops::DeviceChain& chain);
  /// Blocks until what was launched is done.
  Status WaitSync() const;
  /// Blocks until all that was queued is done, launched in full or not.
  Status WaitForAllSync() const;
  /// Time on the GPU, or waiting for it, to the transform stage of the patches' shards.
  void Charge(std::int64_t ns) const;
  /// The patches, which leave the lane empty. Call after WaitSync.
  std::vector<std::unique_ptr<FetchedPatch>> Take();

  bool empty() const { return patches_.empty(); }
  memory::GpuStream stream() const { return stream_.get(); }

 private:
  Status StageLabels(const FetchedPatch& patch, TileDecoder& decoder, LabelArrays& labels);
  Status AddImages(std::size_t index, std::vector<ops::DevicePatch>& launch);
  Status QueueLabels(const FetchedPatch& patch, std::size_t index);
  Status QueueToHost(const FetchedPatch& patch, std::size_t tile);

  memory::OwnedGpuStream stream_;
  memory::GpuEvent made_;
  memory::PinnedBuffer h_tiles_, h_labels_;
  memory::DeviceBlock d_tiles_, d_patches_;
  ops::DeviceRoom room_;
  std::size_t capacity_ = 0, views_ = 0;
  std::size_t tile_bytes_ = 0, tile_stride_ = 0, patch_stride_ = 0, label_stride_ = 0;
  std::size_t tiles_ = 0;  ///< of the patches that are there; padding has none
  std::vector<std::size_t> first_tile_;
  /// Under icc_to_srgb, of each patch and of the one that is staged; null: its colours stay.
  std::vector<std::shared_ptr<const ops::IccLookup>> lookups_;
  std::vector<std::unique_ptr<FetchedPatch>> patches_;
};

}  // namespace patchbay::workers
