// JSON of the values of runtime/core.
#pragma once

#include <optional>

#include "runtime/core/dtype.h"
#include "runtime/core/extent.h"
#include "runtime/core/hash.h"
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

template <>
struct JsonForm<DType> : JsonNames<DType, DTypeFromName> {};

/// [z, y, x]
template <>
struct JsonForm<Extent> {
  static Json To(const Extent& size) { return {size.z, size.y, size.x}; }
  static StatusOr<Extent> From(const Json& json) {
    std::array<std::int64_t, 3> zyx;
    const JsonPlace place("size");
    if (!ReadJson(json, place, zyx).ok()) return InvalidArgument("expected three whole numbers");
    return Extent{zyx[0], zyx[1], zyx[2]};
  }
};

}  // namespace patchbay
