// The set of tissue that an ingest leaves in the stores of slides, made by the task of
// `patchbay labels tissue`.
#pragma once

#include <string>

#include "workers/jobs/ingest/ingest_staging.h"
#include "workers/jobs/task/task.h"

namespace patchbay::workers {

/// Whether the job must find tissue and OUT/store has no set of that name yet: an existing set is
/// kept, since it may be a mask from elsewhere.
bool LacksTissue(const IngestTask& task, const std::string& store);

/// Spawns the task for a finished store that lacks the set.
void AddTissueTask(const IngestTask& task, const std::string& store, TaskOutput& output);

}  // namespace patchbay::workers
