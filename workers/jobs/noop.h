// The op that does nothing, for measuring dispatch and for tests of the runtime.
#pragma once

#include "workers/jobs/task/task.h"

namespace patchbay::workers {

/// Most tasks one noop spawns itself: they travel in one message.
inline constexpr std::int64_t kNoopsPerTask = 10'000;

/// Payload {"spawn": n, "result": text, "fail": text, "spin_ms": n}, all optional: spawns n more
/// noops (above kNoopsPerTask through noops that spawn that many each), returns the text, fails
/// with FailedPrecondition, works for that long with progress.
StatusOr<TaskOutput> RunNoop(TaskContext& context);

}  // namespace patchbay::workers
