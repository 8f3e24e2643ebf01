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
#include "workers/stream/patch_arrays.h"
#include "workers/stream/patch_maker.h"
#include "workers/stream/patch_reader.h"
#include "workers/stream/tile_decoder.h"

namespace patchbay::workers {

/// The memory and the CUDA stream of some patches. One thread; its GPU is selected. Allocates for
/// the first patches of a stream and not again, but for patches of volumes: where a source box
/// alone is larger than a lane, and where one to be smoothed has more than eight times its patch's
/// voxels and scratch never held one as large; and for the colour profile of an image that no lane
/// had before.
class GpuLane {
 public:
  /// `bytes_max`: of its tiles, and of its finished patches, unless one patch alone has more.
  Status Open(std::size_t bytes_max);

  /// Readies an empty lane for the first of `patches`, at least one, all of one stream; returns how
  /// many fit. ResourceExhausted names the image where one does not.
  StatusOr<std::size_t> Begin(std::span<const std::unique_ptr<FetchedPatch>> patches);

  /// Decodes one of those patches into the lane and writes its arrays that lie in host memory.
  /// Queues nothing.
  Status Stage(const FetchedPatch& patch, TileDecoder& decoder, LabelArrays& labels);
  /// The lane's, after it was staged.
  void Add(std::unique_ptr<FetchedPatch> patch);

  /// Queues everything that turns the staged patches into finished ones in their windows: one copy,
  /// one launch. Does not synchronise. After an error something may be queued still.
  Status Launch(const ops::DeviceChain& chain);
  /// Blocks until all launched work is done.
  Status WaitSync() const;
  /// Blocks until all that was queued is done, launched in full or not.
  Status WaitForAllSync() const;
  /// Time on the GPU, or waiting for it, to the transform stage of the patches' shards, and the
  /// cost of the thread since it was charged last.
  void Charge(std::int64_t ns) const;
  /// Charges the time that the GPU was busy with the launched work, less the part in which it was
  /// busy with work up to `last`. Call after WaitSync; `last` is that work's end from then on.
  void ChargeGpu(memory::GpuEvent& last);
  /// The patches, which leave the lane empty. Call after WaitSync.
  std::vector<std::unique_ptr<FetchedPatch>> Take();

  /// Gives back the memory of an empty lane; the next Begin takes it again.
  void Free();

  bool empty() const { return patches_.empty(); }
  memory::GpuStream stream() const { return stream_.get(); }

 private:
  /// Place of one view's tile in the lane.
  struct Tile {
    std::size_t bytes = 0, stride = 0;
  };
  struct Staged {
    std::unique_ptr<FetchedPatch> patch;
    std::size_t begin = 0;   ///< place of its first tile, in bytes
    std::size_t images = 0;  ///< images of the patches before it; padding has none
    /// The lookup of icc_to_srgb; null: the image's colours stay.
    std::shared_ptr<const ops::IccLookup> lookup;
  };

  /// The first patches of a span.
  struct Fitting {
    std::size_t count = 0;
    std::size_t tile_bytes = 0, largest = 0;  ///< bytes of all; bytes of the largest patch
  };

  static Tile TileOf(const FetchedPatch& patch);
  Fitting FirstThatFit(std::span<const std::unique_ptr<FetchedPatch>> patches) const;
  Status FitTiles(const FetchedPatch& first, const Fitting& fitting);
  Status StageLabels(const FetchedPatch& patch, TileDecoder& decoder, LabelArrays& labels);
  Status AddImages(const Staged& staged, std::vector<ops::DevicePatch>& launch);
  Status QueueLabels(const FetchedPatch& patch, std::size_t index);
  Status QueueToHost(const Staged& staged);

  memory::OwnedGpuStream stream_;
  memory::GpuEvent begun_, made_;
  memory::PinnedBuffer h_tiles_, h_labels_;
  memory::DeviceBlock d_tiles_, d_patches_;
  ops::DeviceArena arena_;
  std::size_t bytes_max_ = 0, capacity_ = 0, views_ = 0;
  std::size_t patch_stride_ = 0, label_stride_ = 0;
  std::size_t tile_bytes_ = 0, images_ = 0;       ///< sums over the patches in the lane
  std::shared_ptr<const ops::IccLookup> lookup_;  ///< lookup of the patch that is staged
  std::vector<Staged> patches_;
};

}  // namespace patchbay::workers
