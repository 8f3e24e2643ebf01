// The roles that may send each message. The table is in scheduler/README.md; operators have all
// rights of submitters and trainers.
#pragma once

#include <cstdint>

#include "runtime/core/status.h"

namespace patchbay::protocol {
struct Body;
}

namespace patchbay::scheduler {

enum class Role : std::uint8_t { kOperator, kSubmitter, kWorker, kTrainer };

/// PermissionDenied when `role` may not send this message; InvalidArgument when no role may (facts
/// that only the scheduler sends).
Status CheckRole(Role role, const protocol::Body& body);

}  // namespace patchbay::scheduler
