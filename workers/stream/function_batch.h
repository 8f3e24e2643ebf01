// Patches of a stream with functions of the user's own, on their way: they are made up to the
// functions one by one, and go through them together.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "workers/stream/function_session.h"
#include "workers/stream/patch_arrays.h"
#include "workers/stream/patch_maker.h"
#include "workers/stream/tile_decoder.h"

namespace patchbay::workers {

/// Belongs to one thread, which is that of the decoder.
class FunctionBatch {
 public:
  /// Everything outlives the batch.
  FunctionBatch(const FunctionPolicy& policy, TileDecoder& decoder, PatchEnded ended)
      : policy_(policy), decoder_(decoder), ended_(std::move(ended)) {}

  /// Takes a patch of such a stream, which is no padding. It ends, with others, in this call or in
  /// a later one.
  void Add(std::unique_ptr<FetchedPatch> patch);
  /// Ends all patches that were taken.
  void Flush();

 private:
  using PatchPtr = std::unique_ptr<FetchedPatch>;
  struct OpenSession {
    std::shared_ptr<StreamContext> context;
    std::unique_ptr<FunctionSession> session;
  };

  Status Select(const FetchedPatch& patch);
  /// The array of the first stage, and the mask, of a patch.
  Status Begin(const FetchedPatch& patch, std::size_t place);
  /// From there to the slot, for patches that began at places 0, 1, ...
  Status Finish(std::span<const PatchPtr> patches);
  Status RunStage(plan::FunctionStage stage, std::span<const PatchPtr> patches);
  Status Deliver(const FetchedPatch& patch, std::size_t place);
  std::vector<Status> FinishAlone(std::span<const PatchPtr> patches);

  const FunctionPolicy& policy_;
  TileDecoder& decoder_;
  const PatchEnded ended_;
  LabelArrays labels_;
  std::vector<OpenSession> sessions_;  ///< the one in use last
  std::vector<PatchPtr> taken_;        ///< all of the same stream and epoch
  std::vector<std::byte> tile_, scratch_;
};

}  // namespace patchbay::workers
