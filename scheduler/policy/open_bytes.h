// Limits on the memory of open jobs in the scheduler.
#pragma once

#include <cstdint>
#include <string_view>

#include "runtime/core/status.h"

namespace patchbay::scheduler {

/// ResourceExhausted "<doing>: ..." unless `held` and `more` fit into `most`: with both figures and
/// a remedy.
Status CheckOpenBytes(std::string_view doing, std::uint64_t held, std::uint64_t more,
                      std::uint64_t most);

}  // namespace patchbay::scheduler
