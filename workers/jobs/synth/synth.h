// `synth.slide`, `synth.volume` and `synth.ct` as tasks.
#pragma once

#include "workers/jobs/task/task.h"

namespace patchbay::workers {

/// Payload: SynthSlideOptions. Manifest: `out`. Result: {"bytes": n}.
StatusOr<TaskOutput> RunSynthSlide(TaskContext& context);

/// Payload: SynthVolumeOptions. Manifest: `out`. Result: {}.
StatusOr<TaskOutput> RunSynthVolume(TaskContext& context);

/// Payload: SynthCtOptions. Manifest: `out`, a folder, and `lesions`. Result: {"files": n}.
StatusOr<TaskOutput> RunSynthCt(TaskContext& context);

}  // namespace patchbay::workers
