// A CT series of a phantom as DICOM, with any fault of geometry or format on request.
#pragma once

#include <cstdint>
#include <string>

#include "runtime/core/status.h"
#include "runtime/model/jobs/local_job_options.h"
#include "runtime/os/folders.h"
#include "workers/jobs/synth/synth_slide.h"

namespace patchbay::workers {

/// Writes the series into `folder`, which is made and must not exist, and the mask of its lesions.
/// On failure nothing is left.
/// Returns how many files there are.
StatusOr<std::int64_t> SynthCt(const Folders& allowed, const std::string& folder,
                               const SynthCtOptions& options,
                               const SynthProgress& progress = nullptr);

}  // namespace patchbay::workers
