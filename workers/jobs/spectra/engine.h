// Chooses the implementation (CPU or CUDA) that measures the frames of a job.
#pragma once

#include <memory>

#include "ops/spectral/spectral_frames.h"
#include "runtime/os/available_memory.h"
#include "runtime/wire/protocol/messages.h"
#include "workers/jobs/spectra/grid.h"
#include "workers/jobs/spectra/settings.h"
#include "workers/jobs/task/task.h"

namespace patchbay::workers {

/// One for each thread. Unavailable where this worker has no GPU for settings.numerics.
StatusOr<std::unique_ptr<ops::SpectralFrames>> MakeSpectraEngine(const TaskContext& context,
                                                                 const SpectraSettings& settings);

/// How much a task and its parts are to hold.
SpectraPace SpectraPaceOf(const SpectraSettings& settings);

/// The most a strip takes on a CPU: planes (128 MiB, see grid.cc), units read ahead of them, a
/// native tile of up to 64 MiB, sums.
inline constexpr std::uint64_t kStripMemoryBytes = std::uint64_t{256} << 20;

/// The resources that a task that measures asks the scheduler for.
protocol::Resources SpectraResources(const SpectraSettings& settings);

/// FailedPrecondition unless the memory of a strip fits into `room`; the message says what would
/// help and what would not.
Status CheckStripMemory(const SpectraSettings& settings, const MemoryBudget& room);

}  // namespace patchbay::workers
