#include "workers/jobs/plan/open_request.h"

#include <string_view>
#include <utility>

#include "runtime/core/strings.h"
#include "runtime/model/jobs/stream_request.h"
#include "runtime/model/ops/own_functions.h"

namespace patchbay::workers {

StatusOr<PlanRequest> ParsePlanRequest(const plan::OpTable& ops, Json payload) {
  constexpr std::string_view kWhat = "stream.plan";
  if (!payload.is_object()) return InvalidArgument("stream.plan: payload: no object");
  Json beside = Json::object();
  EachField<plan::StreamStart>([&](const auto& field) {
    if (!payload.contains(field.key)) return;
    beside[field.key] = std::move(payload[field.key]);
    payload.erase(field.key);
  });
  PlanRequest request;
  PB_ASSIGN_OR_RETURN(request.start, FromJson<plan::StreamStart>(beside, kWhat));
  if (request.start.cluster_numerics == Numerics::kStrict) {
    return InvalidArgument(kWhat, ": key 'cluster_numerics': neither cpu nor cuda");
  }
  PB_ASSIGN_OR_RETURN(request.config, plan::RunConfigFromJson(ops, payload));
  if (!request.config.numerics) {
    PB_ASSIGN_OR_RETURN(const auto functions, plan::OwnFunctionsOf(request.config.augment));
    request.config.numerics = functions.empty() ? request.start.cluster_numerics : Numerics::kCpu;
  }
  return request;
}

}  // namespace patchbay::workers
