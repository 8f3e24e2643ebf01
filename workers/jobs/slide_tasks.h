// The tasks that every job over slides begins and ends with.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/protocol/messages.h"

namespace patchbay::workers {

/// The need of a task that ends what others began (a join, a check, a merge): less than theirs. Of
/// a job's ready tasks the scheduler takes the least need first, so slides end one after another,
/// not all of them after the last one's shards.
inline constexpr std::uint32_t kEndingCpuMillis = 500;

/// "<job>.open" of each slide, in a group of its own (slide + 1), then "<job>.summary", which runs
/// once all others have ended. Payloads: {"job_key", "slide"} and {"job_key"}.
std::vector<protocol::TaskSpec> SlideTasks(std::string_view job, const std::string& job_key,
                                           std::size_t slides);

/// "<job>.clean", which a summary spawns when nothing failed. Payload: {"job_key"}.
protocol::TaskSpec CleanTask(std::string_view job, const std::string& job_key);

}  // namespace patchbay::workers
