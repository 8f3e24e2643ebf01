// Which role may send which message. The table is in scheduler/README.md; operators may do what
// submitters and trainers may.
#pragma once

#include "runtime/base/status.h"
#include "runtime/protocol/messages.h"
#include "scheduler/core/core.h"

namespace patchbay::scheduler {

/// PermissionDenied when `role` may not send this message; InvalidArgument when nobody may (facts
/// that only the scheduler states).
Status CheckRole(Role role, const protocol::Body& body);

}  // namespace patchbay::scheduler
