#include "scheduler/policy/open_bytes.h"

#include "runtime/core/strings.h"

namespace patchbay::scheduler {

Status CheckOpenBytes(std::string_view doing, std::uint64_t held, std::uint64_t more,
                      std::uint64_t most) {
  if (held <= most && more <= most - held) return absl::OkStatus();
  return ResourceExhausted(doing, ": the scheduler keeps ", HumanBytes(held),
                           " of open jobs, and with ", HumanBytes(more), " more would exceed ",
                           HumanBytes(most),
                           ": wait until some of them have ended, or cancel them");
}

}  // namespace patchbay::scheduler
