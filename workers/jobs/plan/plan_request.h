// What the tasks that plan a stream are asked for.
#pragma once

#include <cstdint>

#include "runtime/model/plan/run_config.h"
#include "runtime/model/stream/position.h"
#include "workers/jobs/task/task.h"

namespace patchbay::workers {

/// What the payload of stream.plan and stream.join says.
struct PlanRequest {
  plan::RunConfig config;  ///< with numerics
  std::uint32_t world_size = 1;
  Position start;  ///< of the job: where every rank begins
};

/// InvalidArgument naming the key.
StatusOr<PlanRequest> ParsePlanRequest(Json payload);

}  // namespace patchbay::workers
