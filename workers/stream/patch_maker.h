// The decode and transform stages of one thread: from fetched bytes to the finished patch in its
// shard's window, on the CPU or on a GPU.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <span>

#include "workers/functions/function_policy.h"
#include "workers/stream/patch_reader.h"

namespace patchbay::workers {

/// Called once for every patch given to a maker, from the maker's thread.
using PatchEnded = std::function<void(std::unique_ptr<FetchedPatch> patch, const Status& status)>;

/// Patches of one lane of a GPU; fewer where they are large.
inline constexpr std::size_t kLanePatchesMax = 64;
/// Bytes of a lane's tiles, and of its finished patches: larger means larger launches, and more
/// pinned and device memory.
inline constexpr std::size_t kLaneBytesMax = std::size_t{64} << 20;

/// Belongs to one thread.
class PatchMaker {
 public:
  virtual ~PatchMaker() = default;
  /// Makes the patches, or begins to, and leaves the span without them: `ended` (given at
  /// construction) hears of each now or later. They may be of several shards and streams. Writes
  /// nothing of patches whose shard is no longer wanted.
  virtual void Make(std::span<std::unique_ptr<FetchedPatch>> patches) = 0;
  /// More patches a call than these bring nothing.
  virtual std::size_t patches_at_once() const = 0;
  /// Waits for every patch that was begun. The pipeline calls it when nothing else is to do.
  virtual void Flush() = 0;
};

/// One per compute thread, made on that thread.
using PatchMakerFactory = std::function<StatusOr<std::unique_ptr<PatchMaker>>(PatchEnded ended)>;

/// Decodes into a tile that stays in the cache and runs the chain from there into the window; with
/// own functions, as far as `functions` lets them run, on some patches at a time.
std::unique_ptr<PatchMaker> MakeCpuPatchMaker(PatchEnded ended, FunctionPolicy functions = {});

/// Decodes into pinned memory and runs the chain on the GPU of that UUID: up to kLanePatchesMax
/// patches of a stream a launch, as far as `lane_bytes` go, while the next ones are decoded.
/// Unimplemented in a build without CUDA, NotFound when the process does not see the GPU.
StatusOr<std::unique_ptr<PatchMaker>> MakeGpuPatchMaker(const std::string& gpu_uuid,
                                                        PatchEnded ended,
                                                        std::size_t lane_bytes = kLaneBytesMax);

}  // namespace patchbay::workers
