// The convert job: stores become stores of another codec, or slides. convert.plan (root) finds the
// stores and spawns one convert.store for each; convert.summary closes the job.
#pragma once

#include "workers/jobs/staged/staged_job.h"

namespace patchbay::workers {

/// Payload: ConvertOptions. Manifest: `sources`, `out`.
extern const StagedJob kConvertJob;

}  // namespace patchbay::workers
