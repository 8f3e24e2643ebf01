// Which implementation measures the frames of a job: the one place that knows.
#pragma once

#include <memory>

#include "ops/spectral_frames.h"
#include "runtime/protocol/messages.h"
#include "workers/jobs/spectra_settings.h"

namespace patchbay::workers {

/// One for each thread. Unimplemented where this worker cannot give the bits of settings.numerics.
StatusOr<std::unique_ptr<ops::SpectralFrames>> MakeSpectraEngine(const SpectraSettings& settings);

/// What a task that measures needs to be placed.
protocol::Resources SpectraResources(const SpectraSettings& settings);

}  // namespace patchbay::workers
