#include "runtime/client/stream_plan.h"

#include <utility>

#include "runtime/stream/planned_stream.h"

namespace patchbay::client {

StatusOr<StreamPlan> ParseStreamPlan(const std::string& result) {
  PB_ASSIGN_OR_RETURN(PlannedStream planned, DecodePlannedStream(result));
  PB_ASSIGN_OR_RETURN(BatchLayout layout, LayoutOfPlan(planned.plan));
  StreamPlan plan;
  plan.geometry = planned.geometry;
  plan.text = std::move(planned.plan);
  plan.digest = Sha256Of(plan.text);
  plan.layout = std::make_shared<const BatchLayout>(std::move(layout));
  PB_ASSIGN_OR_RETURN(plan.sections, SectionsOf(plan.text));
  return plan;
}

}  // namespace patchbay::client
