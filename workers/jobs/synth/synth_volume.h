// A realistic CT volume made from nothing, as a store.
#pragma once

#include <string>

#include "runtime/core/status.h"
#include "runtime/model/jobs/local_job_options.h"
#include "runtime/os/folders.h"
#include "workers/jobs/synth/synth_slide.h"

namespace patchbay::workers {

/// Writes an abdominal CT in Hounsfield units as an OME-Zarr of int16 (z, y, x): chunks of 64 and
/// zarr shards of 256 voxels a side, spacing 2.5 x 0.78125 x 0.78125 mm, and levels of half the
/// size until one chunk holds the whole. The store appears under its name only when complete and
/// durable; on failure or cancel nothing is left. AlreadyExists when something of that name is
/// there.
Status SynthVolume(const Folders& allowed, const std::string& path,
                   const SynthVolumeOptions& options, const SynthProgress& progress = nullptr);

}  // namespace patchbay::workers
