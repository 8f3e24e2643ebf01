// The last steps of a slide, and recognising that they were taken before.
#pragma once

#include <cstdint>
#include <string>

#include "workers/jobs/ingest/staging.h"
#include "workers/jobs/task/task.h"

namespace patchbay::workers {

/// True when OUT/name is a finished store of outcome.source_sha256 and these settings: then
/// `outcome` gets its digests, sizes and name. False when nothing has that name. AlreadyExists when
/// something else does, DataLoss when a level or a file that the store lists is missing or is no
/// file: it is never touched. Names are looked at, not bytes: those are `patchbay verify`'s.
StatusOr<bool> AdoptFinishedStore(TaskContext& context, const IngestFolders& folders,
                                  const std::string& name, const IngestSettings& settings,
                                  SlideOutcome& outcome);

/// Bytes of a store as ingest makes it, its metadata too; sets of labels in it are not counted.
std::uint64_t StoredBytesOf(TaskContext& context, const std::string& store);

/// For a task of a slide that failed: OK when another slide of this or another job, with the same
/// content and settings, has published the store meanwhile and with that taken the staging folder
/// away. Then there is nothing left to do, and the output is {"published": store}. Otherwise
/// `output`.
StatusOr<TaskOutput> UnlessPublished(TaskContext& context, StatusOr<TaskOutput> output);

}  // namespace patchbay::workers
