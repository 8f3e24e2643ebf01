// A realistic slide, CT volume or CT series made from nothing: for the quickstart, tests and
// benchmarks.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "runtime/core/status.h"
#include "runtime/model/jobs/local_job_options.h"
#include "runtime/os/folders.h"

namespace patchbay::workers {

/// Called with the share of the work done, 0 .. 1, from the calling thread. Returning false
/// cancels.
using SynthProgress = std::function<bool(double)>;

/// Writes an H&E-like slide as an Aperio SVS: JPEG tiles of 256 x 256 as abbreviated streams,
/// levels at 1, 1/4 and 1/16, a striped thumbnail, MPP and AppMag in the description; BigTIFF when
/// it may pass 4 GiB. Memory is a few rows of tiles. The file appears under its name only when
/// complete and durable; on failure or cancel nothing is left.
Status SynthSlide(const Folders& allowed, const std::string& path, const SynthSlideOptions& options,
                  const SynthProgress& progress = nullptr);

/// Writes an abdominal CT in Hounsfield units as an OME-Zarr of int16 (z, y, x): chunks of 64 and
/// zarr shards of 256 voxels a side, spacing 2.5 x 0.78125 x 0.78125 mm, and levels of half the
/// size until one chunk holds the whole. The store appears under its name only when complete and
/// durable; on failure or cancel nothing is left. AlreadyExists when something of that name is
/// there.
Status SynthVolume(const Folders& allowed, const std::string& path,
                   const SynthVolumeOptions& options, const SynthProgress& progress = nullptr);

/// Writes a CT series of a phantom as DICOM, with any fault of geometry or format on request, into
/// `folder`, which is made and must not exist, and the mask of its lesions. On failure nothing is
/// left. Returns how many files there are.
StatusOr<std::int64_t> SynthCt(const Folders& allowed, const std::string& folder,
                               const SynthCtOptions& options,
                               const SynthProgress& progress = nullptr);

}  // namespace patchbay::workers
