// The consequences of a failure for the task that failed.
#pragma once

#include <cstdint>

#include "runtime/core/clock.h"

namespace patchbay::scheduler {

/// True for codes of errors that may be transient (absl::StatusCode numbers): Cancelled, Unknown,
/// DeadlineExceeded, ResourceExhausted, Aborted, Internal, Unavailable. The others mean a wrong
/// input or request: a retry gives the same error.
bool IsRetryable(std::int32_t code);

/// Wait before attempt `attempt` (1 = the first retry): `first` doubled each time, at most `most`.
TimeMs BackOff(std::uint32_t attempt, TimeMs first, TimeMs most);

}  // namespace patchbay::scheduler
