// The fields of an error, listed once for JSON (runtime/format/json/json_forms.h) and for the
// wire (runtime/wire/protocol/message_fields.h).
#pragma once

#include <type_traits>

#include "runtime/core/fields.h"
#include "runtime/core/outcome.h"

// F(member, name of its accessors on the wire), in the order in which they are written.
#define PATCHBAY_SUBJECT_FIELDS(F) F(kind, Kind) F(index, Index) F(part, Part)
#define PATCHBAY_OUTCOME_FIELDS(F) \
  F(code, Code)                    \
  F(doing, Doing) F(subject, Subject) F(cause, Cause) F(advice, Advice) F(others, Others)

namespace patchbay {

/// Numbers are always written, other members unless they are empty.
template <typename... Struct, typename... T>
constexpr auto OutcomeFields(int, Field<Struct, T>... fields) {
  return AsObject((std::is_arithmetic_v<T> || std::is_enum_v<T> ? fields.Required() : fields)...);
}

#define PATCHBAY_FIELD(member, Wire) , Field(#member, &T::member)
template <>
struct FieldsOf<Subject> {
  using T = Subject;
  static constexpr auto List() { return OutcomeFields(0 PATCHBAY_SUBJECT_FIELDS(PATCHBAY_FIELD)); }
};
template <>
struct FieldsOf<Outcome> {
  using T = Outcome;
  static constexpr auto List() { return OutcomeFields(0 PATCHBAY_OUTCOME_FIELDS(PATCHBAY_FIELD)); }
};
#undef PATCHBAY_FIELD

}  // namespace patchbay
