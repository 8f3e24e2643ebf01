// The trainer's part of a stream's plan: counts, the arrays of a batch, and the digest that names
// it.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "runtime/client/resume_token.h"
#include "runtime/core/hash.h"
#include "runtime/core/ids.h"
#include "runtime/core/status.h"
#include "runtime/model/stream/batch_layout.h"
#include "runtime/model/stream/stream_geometry.h"

namespace patchbay::protocol {
struct Body;
}

namespace patchbay::client {

struct StreamPlan {
  std::string text;
  Digest digest;  ///< digest of the text, computed here
  PlanSections sections;
  StreamGeometry geometry;
  std::shared_ptr<const BatchLayout> layout;

  /// Patches of a rank's part of a batch; the rest of it is padding.
  std::uint32_t RealPatches(Position at, std::uint32_t rank) const;
};

/// From the result of a stream's planning task. InvalidArgument when a part is missing or the parts
/// contradict each other.
StatusOr<StreamPlan> ParseStreamPlan(const std::string& result);

/// InvalidArgument for another number of ranks; FailedPrecondition for a token of another plan.
Status CheckIsMeant(const StreamPlan& plan, std::uint32_t world_size,
                    const std::optional<ResumeToken>& resume);

/// A command's answer; the error that the scheduler answered with.
using AskScheduler = std::function<StatusOr<protocol::Body>(protocol::Body)>;
/// The plan of a stream job, piece by piece; nullopt while it is not made yet. FailedPrecondition
/// when it could not be planned.
StatusOr<std::optional<StreamPlan>> FetchStreamPlan(JobId job, const AskScheduler& ask);

}  // namespace patchbay::client
