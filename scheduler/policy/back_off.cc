#include "scheduler/policy/back_off.h"

#include <algorithm>

#include "runtime/core/status.h"

namespace patchbay::scheduler {

bool IsRetryable(std::int32_t code) {
  switch (static_cast<absl::StatusCode>(code)) {
    case absl::StatusCode::kCancelled:
    case absl::StatusCode::kUnknown:
    case absl::StatusCode::kDeadlineExceeded:
    case absl::StatusCode::kResourceExhausted:
    case absl::StatusCode::kAborted:
    case absl::StatusCode::kInternal:
    case absl::StatusCode::kUnavailable:
      return true;
    default:
      return false;
  }
}

TimeMs BackOff(std::uint32_t attempt, TimeMs first, TimeMs most) {
  TimeMs wait = first;
  for (std::uint32_t i = 1; i < attempt && wait < most; ++i) wait *= 2;
  return std::min(wait, most);
}

}  // namespace patchbay::scheduler
