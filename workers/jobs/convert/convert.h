// The convert job: stores become stores of another codec, or files. convert.plan (root) finds the
// stores and spawns a convert.open for each; that spawns the convert.part that make its parts and
// the convert.store that completes it, and convert.summary closes the job.
#pragma once

#include "workers/jobs/staged/staged_job.h"

namespace patchbay::workers {

/// Payload: ConvertOptions. Manifest: `sources`, `out`.
extern const StagedJob kConvertJob;

}  // namespace patchbay::workers
