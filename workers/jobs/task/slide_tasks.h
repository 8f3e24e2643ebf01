// The tasks that every job over slides begins and ends with.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/wire/protocol/messages.h"
#include "workers/jobs/task/slide_job.h"
#include "workers/jobs/task/task.h"

namespace patchbay::workers {

/// The need of a task that ends what others began (a join, a check, a merge): less than theirs. Of
/// a job's ready tasks the scheduler takes the least need first, so slides end one after another,
/// not all of them after the last one's shards.
inline constexpr std::uint32_t kEndingCpuMillis = 500;

/// The most slides one job takes.
inline constexpr std::size_t kMaxSlides = 20'000;

/// "<job>.open" of each slide, in a group of its own (slide + 1), then "<job>.summary", which runs
/// once all others have ended. Payloads: {"job_key", "slide"} and {"job_key"}.
std::vector<protocol::TaskSpec> SlideTasks(std::string_view job, const std::string& job_key,
                                           std::size_t slides);

/// What "<job>.plan" ends with: SlideTasks, and as its result {"job_key", "slides",
/// "summary_task"} and `more`.
TaskOutput PlannedSlides(const SlideJobFolders& folders, std::size_t slides,
                         const Json& more = Json::object());

/// What "<job>.summary" ends with. When nothing failed it spawns "<job>.clean" (payload:
/// {"job_key"}), so that the job's folder outlives a summary whose commit was lost; otherwise the
/// folder stays: a retry of the failed slides needs it.
TaskOutput Summarised(const SlideJobFolders& folders, std::string result, bool is_whole);

/// "<job>.clean".
StatusOr<TaskOutput> CleanSlideJob(TaskContext& context, const std::string& job);

}  // namespace patchbay::workers
