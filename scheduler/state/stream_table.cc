#include "scheduler/state/stream_table.h"

#include <utility>

#include "runtime/model/stream/planned_stream.h"

namespace patchbay::scheduler {

Status ReadStreamPlan(const std::string& result, std::uint32_t world_size, Stream& stream) {
  PB_ASSIGN_OR_RETURN(PlannedStream planned, DecodePlannedStream(result));
  if (planned.geometry.world_size != world_size) {
    return InvalidArgument("read stream plan: it is for ", planned.geometry.world_size,
                           " ranks, the job for ", world_size);
  }
  stream.geometry = planned.geometry;
  stream.numerics = planned.numerics;
  stream.start = planned.start;
  stream.byte_versions = std::move(planned.byte_versions);
  stream.images = std::move(planned.images);
  stream.plan = std::move(planned.plan);
  stream.manifest = DumpJson(planned.manifest);
  stream.plan_digest = Sha256Of(stream.plan);
  return absl::OkStatus();
}

}  // namespace patchbay::scheduler
