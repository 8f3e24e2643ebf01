// Worker memory needed to make one zarr shard.
#pragma once

#include <cstdint>

#include "runtime/core/status.h"
#include "runtime/os/available_memory.h"
#include "workers/jobs/ingest/ingest_slide.h"

namespace patchbay::workers {

/// The most bytes that a shard of that stored level needs while it is made: its encoded bytes,
/// which may be as many as its pixels' and are held twice in part while they grow; a third of its
/// pixels for coarser levels, as pixels, encoded and serialised; bands of rows. The worker's base
/// memory is not included.
std::uint64_t ShardMemoryBytes(const IngestSlide& slide, int stored_level);

/// Memory in bytes that a task that makes shards asks the scheduler to reserve on its node. All
/// slides of one kind in a job ask for the same amount: the scheduler starts the smallest need
/// first, and slides should end one after another. Never more than the usable part of `limit`; such
/// tasks then run one at a time.
std::uint64_t ShardTaskMemoryBytes(const zarr::ImageStoreSettings& store,
                                   const MemoryBudget& limit);

/// InvalidArgument, naming --shard, when the slide's largest shard does not fit into `limit`
/// (kMemoryUsePercent of it): no wait would make room for it.
Status CheckShardFits(const IngestSlide& slide, const MemoryBudget& limit);

}  // namespace patchbay::workers
