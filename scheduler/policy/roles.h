// The roles that may send each message. The table is in scheduler/README.md; operators may do what
// submitters and trainers may.
#pragma once

#include <cstdint>

#include "runtime/core/status.h"
#include "runtime/wire/protocol/messages.h"

namespace patchbay::scheduler {

enum class Role : std::uint8_t { kOperator, kSubmitter, kWorker, kTrainer };

/// PermissionDenied when `role` may not send this message; InvalidArgument when nobody may (facts
/// that only the scheduler states).
Status CheckRole(Role role, const protocol::Body& body);

}  // namespace patchbay::scheduler
