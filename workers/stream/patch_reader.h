// The read stage: from a patch's ordinal to the encoded bytes it is made of.
#pragma once

#include <cstdint>
#include <memory>

#include "runtime/plan/plan.h"
#include "workers/sources/image_source.h"
#include "workers/stream/shard_job.h"

namespace patchbay::workers {

/// A patch between read and decode. Reused, so that its bytes are allocated once.
struct FetchedPatch {
  std::shared_ptr<ShardJob> job;
  std::uint32_t index = 0;  ///< within the shard
  plan::PatchSpec spec;
  std::shared_ptr<const ImageSource> image;  ///< null for padding
  EncodedPatch encoded;
  std::shared_ptr<const ImageSource> labels;  ///< the image's label set; null without labels
  EncodedPatch encoded_labels;
};

/// Derives the spec of patch `index` of the job and fetches what it needs. I/O, no decoding. Errors
/// name the image by its index in the plan.
Status ReadPatch(const std::shared_ptr<ShardJob>& job, std::uint32_t index, FetchedPatch& out);

}  // namespace patchbay::workers
