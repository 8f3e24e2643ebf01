// Zarr shards of the slide's own tiles.
#pragma once

#include <cstdint>

#include "ops/stain_normalize/stain_histogram.h"
#include "runtime/format/zarr/shard_encoder.h"
#include "workers/jobs/ingest/ingest_slide.h"

namespace patchbay::workers {

struct KeptShard {
  zarr::WholeShard shard;
  ops::StainHistogram colours;  ///< level 0's; empty without statistics
  std::uint64_t absent_pieces = 0;
};

/// Copies the tiles of the shard out of the slide. They are decoded for statistics only: without
/// them a damaged tile is found when it is read.
StatusOr<KeptShard> KeepShard(TaskContext& context, const IngestSlide& slide,
                              const zarr::ShardPlace& place);

}  // namespace patchbay::workers
