#include "runtime/client/stream_plan.h"

#include <utility>

#include "runtime/model/stream/planned_stream.h"
#include "runtime/wire/protocol/envelope.h"

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

StatusOr<std::optional<StreamPlan>> FetchStreamPlan(JobId job, const AskScheduler& ask) {
  std::string text;
  for (;;) {
    PB_ASSIGN_OR_RETURN(const protocol::Body answer,
                        ask(protocol::FetchResult{TaskId{job, protocol::kLastTask}, text.size()}));
    const auto* fetched = std::get_if<protocol::ResultFetched>(&answer);
    if (fetched == nullptr) return Internal("fetch plan: unexpected answer type");
    switch (fetched->state) {
      case protocol::TaskState::kDone:
        break;
      case protocol::TaskState::kFailed:
      case protocol::TaskState::kCancelled:
      case protocol::TaskState::kQuarantined:
        return FailedPrecondition("its planning failed");
      default:
        return std::nullopt;
    }
    text += fetched->result;
    if (text.size() > protocol::kMaxResultBytes) {
      return InvalidArgument("fetch plan: it is too large");
    }
    if (fetched->result.empty() || text.size() >= fetched->result_bytes) break;
  }
  PB_ASSIGN_OR_RETURN(StreamPlan plan, ParseStreamPlan(text));
  return plan;
}

Status CheckIsMeant(const StreamPlan& plan, std::uint32_t world_size,
                    const std::optional<ResumeToken>& resume) {
  if (plan.geometry.world_size != world_size) {
    return InvalidArgument("the stream is for ", plan.geometry.world_size, " ranks, not ",
                           world_size);
  }
  if (!resume.has_value()) return absl::OkStatus();
  PB_RETURN_IF_ERROR(CheckResume(*resume, plan.digest, plan.sections));
  return CheckPosition(*resume, plan.geometry);
}

std::uint32_t StreamPlan::RealPatches(Position at, std::uint32_t rank) const {
  const PatchRun part = RankRun(geometry, at.batch, rank);
  const std::uint64_t end = geometry.patches_per_epoch;
  if (geometry.tail != Tail::kPad || part.first_ordinal + part.count <= end) return part.count;
  return part.first_ordinal >= end ? 0 : static_cast<std::uint32_t>(end - part.first_ordinal);
}

}  // namespace patchbay::client
