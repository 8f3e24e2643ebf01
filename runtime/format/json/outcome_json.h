// An outcome as JSON.
#pragma once

#include <optional>
#include <string_view>

#include "runtime/core/outcome_fields.h"
#include "runtime/format/json/described.h"

namespace patchbay {

inline std::optional<SubjectKind> SubjectKindFromName(std::string_view name) {
  for (int kind = 0; kind <= static_cast<int>(SubjectKind::kPeer); ++kind) {
    if (NameOf(static_cast<SubjectKind>(kind)) == name) return static_cast<SubjectKind>(kind);
  }
  return std::nullopt;
}

template <>
struct JsonForm<SubjectKind> : JsonNames<SubjectKind, SubjectKindFromName> {};

}  // namespace patchbay
