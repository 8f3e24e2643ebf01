// Cores that this process may use.
#pragma once

#include <cstdint>

namespace patchbay {

/// By its affinity and the quota of its control group; at least 1.
std::int64_t UsableCores();

}  // namespace patchbay
