// The tasks that plan a stream or lock a run: they list the images of the dataset, open each, and
// make the plan.
#pragma once

#include <cstddef>
#include <string_view>

#include "workers/jobs/task/task.h"

namespace patchbay::workers {

/// How many tasks open the images of a dataset whose list of paths takes `list_bytes`: every one of
/// them is sent the list.
std::size_t OpeningTasks(std::size_t images, std::size_t list_bytes);

/// The root task: finds the images and spawns a stream.open for every group of them and the
/// stream.join that follows. Payload: a normalised run config (plan::ToJson) together with the keys
/// of plan::StreamStart. Manifest: plan::StreamManifest. Result: ImageList; errors during planning
/// number images by it. Unreadable entries in a folder of the dataset count as images.
StatusOr<TaskOutput> RunStreamPlan(TaskContext& context);

/// Payload: OpenRequest; inputs: the root's result. Opens and hashes these images. Result: a list
/// of ImageRow. The subject of an error is the image: a damaged, unreadable or forbidden one fails
/// the task, or with "skip" is reported in its row. Transient errors (I/O, too little memory) fail
/// the task in both cases, and it is retried.
StatusOr<TaskOutput> RunStreamOpen(TaskContext& context);

/// Payload: that of the root; inputs: the result of the root and of every stream.open, in order.
/// Result: a PlannedStream; its manifest is a plan::PlannedManifest, and it names at most
/// kMaxSkippedNamed of the images that were left out.
StatusOr<TaskOutput> RunStreamJoin(TaskContext& context);

/// Finds the facts that a lock pins (runtime/model/plan/run_lock.h). Payload: plan::LockRequest;
/// manifest: as for stream.plan. Result: plan::FoundImages. Any image that cannot be read is an
/// error.
StatusOr<TaskOutput> RunLockImages(TaskContext& context);

/// The work that errors of a plan name.
inline constexpr std::string_view kPlanStream = "plan stream";

inline constexpr std::size_t kMaxSkippedNamed = 1'000;

}  // namespace patchbay::workers
