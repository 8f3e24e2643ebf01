// The root task of a stream: opens every image of the dataset once and makes the plan.
#pragma once

#include "workers/jobs/task.h"

namespace patchbay::workers {

/// Payload: a normalised run config (plan::ToJson), and beside its keys optionally "world_size" (1)
/// and "cluster_numerics" ("cpu"), which decides when the config does not. Manifest: {"images":
/// [paths]}.
/// Result: {"plan": canonical text, "manifest": see planned_images.h, "geometry":
/// {"patches_per_epoch", "global_batch", "tail", "world_size", "shard_patches", "patch_bytes"}}.
/// Errors name the image: its path here, "image N" or "dataset N" where they travel.
StatusOr<TaskOutput> RunStreamPlan(TaskContext& context);

}  // namespace patchbay::workers
