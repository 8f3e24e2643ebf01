// An outcome as JSON.
#pragma once

#include <optional>
#include <string_view>

#include "runtime/core/outcome.h"
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

template <>
struct FieldsOf<Subject> {
  static constexpr auto List() {
    return AsObject(Field("kind", &Subject::kind).Required(),
                    Field("index", &Subject::index).Required(), Field("part", &Subject::part));
  }
};

/// Members that say nothing are left out, but for the code.
template <>
struct FieldsOf<Outcome> {
  static constexpr auto List() {
    using T = Outcome;
    return AsObject(Field("code", &T::code).Required(), Field("doing", &T::doing),
                    Field("subject", &T::subject), Field("cause", &T::cause),
                    Field("advice", &T::advice), Field("others", &T::others));
  }
};

}  // namespace patchbay
