// Errors about an image of a plan, by its number.
#pragma once

#include <cstddef>
#include <string_view>

#include "runtime/core/outcome.h"

namespace patchbay::plan {

/// An InvalidArgument error about an image.
inline Status ImageError(std::size_t image, std::string_view cause) {
  return ErrorAbout(absl::StatusCode::kInvalidArgument, "plan", {SubjectKind::kImage, image, ""},
                    cause);
}

/// An InvalidArgument error about an image. In `cause` kOtherSubject is the plan's first image.
inline Status OtherThanFirst(std::size_t image, std::string_view cause, std::string_view advice) {
  Outcome outcome = OutcomeOf(ErrorAbout(absl::StatusCode::kInvalidArgument, "plan",
                                         {SubjectKind::kImage, image, ""}, cause, advice));
  outcome.others = {{SubjectKind::kImage, 0, ""}};
  return StatusOf(outcome);
}

}  // namespace patchbay::plan
