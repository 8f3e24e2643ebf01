#include "scheduler/server/reply_cache.h"

#include <variant>

#include "runtime/wire/protocol/envelope.h"

namespace patchbay::scheduler {

bool MustNotRepeat(const protocol::Body& body) {
  return std::holds_alternative<protocol::SubmitJob>(body) ||
         std::holds_alternative<protocol::CancelJob>(body) ||
         std::holds_alternative<protocol::RetryJob>(body);
}

}  // namespace patchbay::scheduler
