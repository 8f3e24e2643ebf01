// `synth.slide` as a task.
#pragma once

#include "workers/jobs/task.h"

namespace patchbay::workers {

/// Payload: SynthSlideOptions. Manifest: {"out": path}. Result: {"bytes": n}.
StatusOr<TaskOutput> RunSynthSlide(TaskContext& context);

}  // namespace patchbay::workers
