// The last steps of a slide, and recognising that they were taken before.
#pragma once

#include <string>

#include "workers/jobs/ingest/staging.h"

namespace patchbay::workers {

/// True when OUT/name is a finished store of outcome.source_sha256 and these settings: then
/// `outcome` gets its digests, sizes and name. False when nothing has that name. AlreadyExists when
/// something else does: it is never touched.
StatusOr<bool> AdoptFinishedStore(const IngestFolders& folders, const std::string& name,
                                  const IngestSettings& settings, SlideOutcome& outcome);

}  // namespace patchbay::workers
