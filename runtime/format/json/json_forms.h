// JSON of the values of runtime/core.
#pragma once

#include <optional>
#include <string_view>

#include "runtime/core/dtype.h"
#include "runtime/core/extent.h"
#include "runtime/core/hash.h"
#include "runtime/core/outcome_fields.h"
#include "runtime/format/json/described.h"

namespace patchbay {

/// 64 hex digits.
template <>
struct JsonForm<Digest> {
  static Json To(const Digest& digest) { return digest.Hex(); }
  static StatusOr<Digest> From(const Json& json) {
    if (!json.is_string()) return InvalidArgument("expected a digest");
    return Digest::FromHex(json.get_ref<const std::string&>());
  }
};

inline std::optional<SubjectKind> SubjectKindFromName(std::string_view name) {
  for (int kind = 0; kind <= static_cast<int>(SubjectKind::kPeer); ++kind) {
    if (NameOf(static_cast<SubjectKind>(kind)) == name) return static_cast<SubjectKind>(kind);
  }
  return std::nullopt;
}

template <>
struct JsonForm<SubjectKind> : JsonNames<SubjectKind, SubjectKindFromName> {};

template <>
struct JsonForm<DType> : JsonNames<DType, DTypeFromName> {};

/// [z, y, x]
template <>
struct FieldsOf<Extent> {
  static constexpr auto List() {
    return AsArray(Field("z", &Extent::z), Field("y", &Extent::y), Field("x", &Extent::x));
  }
};

/// [z, y, x]
template <>
struct FieldsOf<Point> {
  static constexpr auto List() {
    return AsArray(Field("z", &Point::z), Field("y", &Point::y), Field("x", &Point::x));
  }
};

}  // namespace patchbay
