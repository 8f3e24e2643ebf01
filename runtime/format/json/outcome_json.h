// An outcome as JSON.
#pragma once

#include <string_view>

#include "runtime/core/outcome.h"
#include "runtime/core/status.h"
#include "runtime/format/json/described.h"

namespace patchbay {

/// {"code", "doing", "subject": {"kind", "index", "part"}, "cause", "advice", "others"}; empty
/// members are left out.
Json ToJson(const Outcome& outcome);
Json ToJson(const Subject& subject);
StatusOr<Outcome> OutcomeFromJson(const Json& json);

template <>
struct JsonForm<Outcome> {
  static Json To(const Outcome& outcome) { return ToJson(outcome); }
  static StatusOr<Outcome> From(const Json& json) { return OutcomeFromJson(json); }
};

}  // namespace patchbay
