// What a task hands to code that works long: a step of progress, and whether to go on.
#pragma once

#include <functional>

#include "workers/jobs/task/task.h"

namespace patchbay::workers {

/// One step of progress; Cancelled once the lease was revoked.
inline Status StepOf(TaskContext& context) {
  context.AddProgress();
  return context.CheckCancelled();
}

/// StepOf as a callback, for as long as the context lives.
inline std::function<Status()> ProgressOf(TaskContext& context) {
  return [&context] { return StepOf(context); };
}

}  // namespace patchbay::workers
