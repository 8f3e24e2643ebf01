// The read stage: from a patch's ordinal to the encoded bytes it is made of.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "runtime/model/plan/plan.h"
#include "workers/sources/image_source.h"
#include "workers/stream/shard_work.h"
#include "workers/stream/view_window.h"

namespace patchbay::workers {

/// One image of a patch, as it was read.
struct FetchedView {
  ViewWindow window;
  EncodedPatch encoded;
};

/// The labels of a patch by one label set, as they were read.
struct FetchedLabels {
  std::shared_ptr<const ImageSource> source;
  EncodedPatch encoded;
};

/// A patch between read and decode. Reused, so that its bytes are allocated once.
struct FetchedPatch {
  std::shared_ptr<ShardWork> work;
  std::uint32_t index = 0;  ///< within the shard
  plan::PatchSpec spec;
  std::shared_ptr<const ImageSource> image;  ///< null for padding
  std::vector<FetchedView> views;            ///< the plan's views(); stale for padding
  std::vector<FetchedLabels> labels;  ///< the label sets that the context reads; stale for padding
  bool is_second_read = false;        ///< the first one's bytes were damaged
  std::size_t held_bytes = 0;  ///< BufferBytes() as the pipeline counts them; 0 = not counted

  /// Bytes of all its buffers, whatever part of them the patch takes.
  std::size_t BufferBytes() const;
  void FreeBuffers();
  /// Lets go of the open files of the image and its labels; the buffers stay.
  void CloseImages();
};

/// Derives the spec of patch `index` of the shard and fetches its bytes: I/O without decoding.
/// `after_piece` is called after every read, and after an image is opened; its error ends the
/// fetch. Errors name the image by its index in the plan.
Status ReadPatch(const std::shared_ptr<ShardWork>& work, std::uint32_t index,
                 const AfterPiece& after_piece, FetchedPatch& out);

}  // namespace patchbay::workers
