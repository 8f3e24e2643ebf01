// A realistic slide made from nothing: for the quickstart, for tests and for benchmarks.
#pragma once

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

}  // namespace patchbay::workers
