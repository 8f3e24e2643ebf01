// The tasks that plan a stream or lock a run: which images the dataset has, what each of them is,
// and the plan.
#pragma once

#include <cstddef>

#include "workers/jobs/task/task.h"

namespace patchbay::workers {

/// How many tasks open the images of a dataset whose list of paths takes `list_bytes`: every one of
/// them is sent the list.
std::size_t OpeningTasks(std::size_t images, std::size_t list_bytes);

/// The root task: finds the images and spawns a stream.open for every group of them and the
/// stream.join that follows. Payload: a normalised run config (plan::ToJson), and beside its keys
/// those of plan::StreamStart. Manifest: plan::StreamManifest. Result: ImageList, the images that
/// errors have the numbers of while planning.
/// What lies in a folder of the dataset and may not be looked at counts as an image.
StatusOr<TaskOutput> RunStreamPlan(TaskContext& context);

/// Payload: OpenRequest; inputs: the root's result. Opens and hashes these images. Result: a list
/// of ImageRow. The subject of an error is the image: one that is damaged, unreadable or not to be
/// read fails the task, or with "skip" is reported in its row. What may pass (I/O errors, too
/// little memory) fails the task in both cases and is tried again.
StatusOr<TaskOutput> RunStreamOpen(TaskContext& context);

/// Payload: as the root's; inputs: the root's result and those of every stream.open in order.
/// Result: a PlannedStream; its manifest is a plan::PlannedManifest, and at most
/// kMaxSkippedNamed of the images that were left out are named.
StatusOr<TaskOutput> RunStreamJoin(TaskContext& context);

/// Finds the facts that a lock pins (runtime/model/plan/run_lock.h). Payload: plan::LockRequest;
/// manifest: as for stream.plan. Result: plan::FoundImages. Any image that cannot be read is an
/// error.
StatusOr<TaskOutput> RunLockImages(TaskContext& context);

inline constexpr std::size_t kMaxSkippedNamed = 1'000;

}  // namespace patchbay::workers
