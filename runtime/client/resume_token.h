// The position at which a stream continues; a trainer saves it with its model.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/core/hash.h"
#include "runtime/core/status.h"
#include "runtime/model/stream/position.h"
#include "runtime/model/stream/stream_geometry.h"

namespace patchbay::client {

/// Digests of the parts of a plan's text, by their source, so that a message can name the input
/// that differs.
struct PlanSections {
  std::vector<std::string> digests;  ///< 16 hex digits each; none in tokens of earlier versions
  bool operator==(const PlanSections&) const = default;
};

/// From a plan's text. InvalidArgument when it is not a plan.
StatusOr<PlanSections> SectionsOf(std::string_view plan_text);

/// A position in a plan. Knows nothing of ranks, workers or hosts.
struct ResumeToken {
  Position next;  ///< the first batch not taken yet
  Digest plan;
  PlanSections sections;
  std::uint32_t global_size = 0;  ///< patches of a batch, all ranks together

  std::string Text() const;
};

/// InvalidArgument unless it is the output of Text() of this version or the one before.
StatusOr<ResumeToken> ParseResumeToken(std::string_view text);

/// FailedPrecondition when the token is of another plan, naming the inputs that differ.
Status CheckResume(const ResumeToken& token, const Digest& plan, const PlanSections& sections);

/// FailedPrecondition when the token's position is none of the plan's, as only an altered token's
/// is.
Status CheckPosition(const ResumeToken& token, const StreamGeometry& geometry);

}  // namespace patchbay::client
