// `synth.slide`, `synth.volume` and `synth.ct` as tasks.
#pragma once

#include "workers/jobs/task/task.h"

namespace patchbay::workers {

/// Payload: SynthSlideOptions. Manifest: {"out": path}. Result: {"bytes": n}.
StatusOr<TaskOutput> RunSynthSlide(TaskContext& context);

/// Payload: SynthVolumeOptions. Manifest: {"out": path}. Result: {}.
StatusOr<TaskOutput> RunSynthVolume(TaskContext& context);

/// Payload: SynthCtOptions. Manifest: {"out": folder}. Result: {"files": n}.
StatusOr<TaskOutput> RunSynthCt(TaskContext& context);

}  // namespace patchbay::workers
