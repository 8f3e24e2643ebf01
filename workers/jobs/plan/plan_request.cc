#include "workers/jobs/plan/plan_request.h"

#include <optional>
#include <string>
#include <utility>

namespace patchbay::workers {
namespace {

StatusOr<Numerics> ClusterNumerics(const Json& payload) {
  PB_ASSIGN_OR_RETURN(const std::string name,
                      JsonString(payload, "cluster_numerics", "stream.plan"));
  const std::optional<Numerics> numerics = NumericsFromName(name);
  if (numerics == Numerics::kCpu || numerics == Numerics::kCuda) return *numerics;
  return absl::InvalidArgumentError(
      StrCat("stream.plan: cluster_numerics: '", name, "' is neither cpu nor cuda"));
}

StatusOr<Position> StartOf(const Json& payload) {
  const Json& start = payload["start"];
  const bool whole = start.is_array() && start.size() == 2 && start[0].is_number_unsigned() &&
                     start[1].is_number_unsigned();
  if (whole && start[0].get<std::uint64_t>() <= kMaxEpoch) {
    return Position{start[0].get<std::uint32_t>(), start[1].get<std::uint64_t>()};
  }
  return absl::InvalidArgumentError("stream.plan: start: expected [epoch, batch]");
}

}  // namespace

StatusOr<PlanRequest> ParsePlanRequest(Json payload) {
  PlanRequest request;
  if (!payload.is_object()) return absl::InvalidArgumentError("stream.plan: payload: no object");
  Numerics numerics = Numerics::kCpu;
  if (payload.contains("world_size")) {
    PB_ASSIGN_OR_RETURN(const std::int64_t ranks, JsonInt(payload, "world_size", "stream.plan"));
    if (ranks < 1 || ranks > kMaxWorldSize) {
      return absl::InvalidArgumentError(
          StrCat("stream.plan: world_size: ", ranks, " is not in 1..", kMaxWorldSize));
    }
    request.world_size = static_cast<std::uint32_t>(ranks);
    payload.erase("world_size");
  }
  if (payload.contains("start")) {
    PB_ASSIGN_OR_RETURN(request.start, StartOf(payload));
    payload.erase("start");
  }
  if (payload.contains("cluster_numerics")) {
    PB_ASSIGN_OR_RETURN(numerics, ClusterNumerics(payload));
    payload.erase("cluster_numerics");
  }
  PB_ASSIGN_OR_RETURN(request.config, plan::RunConfigFromJson(payload));
  if (!request.config.numerics) request.config.numerics = numerics;
  return request;
}

}  // namespace patchbay::workers
