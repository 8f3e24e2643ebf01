// Callbacks that a task passes to long-running code: they count progress and tell it when to stop.
#pragma once

#include <functional>

#include "workers/jobs/task/task.h"

namespace patchbay::workers {

/// One step of progress; Cancelled once the lease was revoked.
inline Status StepOf(TaskContext& context) {
  context.AddProgress();
  return context.CheckCancelled();
}

/// StepOf as a callback, valid while the context lives.
inline std::function<Status()> ProgressOf(TaskContext& context) {
  return [&context] { return StepOf(context); };
}

}  // namespace patchbay::workers
