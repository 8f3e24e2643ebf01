// The request of the tasks that plan a stream.
#pragma once

#include "runtime/model/jobs/stream_request.h"
#include "runtime/model/plan/run_config.h"
#include "workers/jobs/task/task.h"

namespace patchbay::workers {

/// The payload of stream.plan and stream.join.
struct PlanRequest {
  plan::RunConfig config;  ///< with numerics
  plan::StreamStart start;
};

/// InvalidArgument naming the key.
StatusOr<PlanRequest> ParsePlanRequest(Json payload);

}  // namespace patchbay::workers
