// The op that does nothing, for measuring dispatch and for tests of the runtime.
#pragma once

#include "workers/jobs/task.h"

namespace patchbay::workers {

/// Payload {"spawn": n, "result": text, "fail": text, "spin_ms": n}, all optional: spawns n more
/// noops, returns the text, fails with FailedPrecondition, works for that long with progress.
StatusOr<TaskOutput> RunNoop(TaskContext& context);

}  // namespace patchbay::workers
