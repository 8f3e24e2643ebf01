// The tasks that every job over slides begins with.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/protocol/messages.h"

namespace patchbay::workers {

/// "<job>.open" of each slide, in a group of its own (slide + 1), then "<job>.summary", which runs
/// once all others have ended. Payloads: {"job_key", "slide"} and {"job_key"}.
std::vector<protocol::TaskSpec> SlideTasks(std::string_view job, const std::string& job_key,
                                           std::size_t slides);

}  // namespace patchbay::workers
