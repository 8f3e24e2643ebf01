// The JSON fields of this folder's structs, and the JSON forms of its other values.
#pragma once

#include "runtime/format/json/described.h"
#include "runtime/model/stream/limits.h"
#include "runtime/model/stream/numerics.h"
#include "runtime/model/stream/position.h"
#include "runtime/model/stream/stream_geometry.h"

namespace patchbay {

/// [epoch, batch]
template <>
struct FieldsOf<Position> {
  static constexpr auto List() {
    return AsArray(Field("epoch", &Position::epoch).Within(0, kMaxEpoch),
                   Field("batch", &Position::batch));
  }
};

/// [patches of each, units]
template <>
struct FieldsOf<UnitRuns::Run> {
  static constexpr auto List() {
    using Run = UnitRuns::Run;
    return AsArray(Field("patches_per_unit", &Run::patches_per_unit), Field("units", &Run::units));
  }
};

template <>
struct JsonForm<Numerics> : JsonNames<Numerics, NumericsFromName> {};
template <>
struct JsonForm<Tail> : JsonNames<Tail, TailFromName> {};

}  // namespace patchbay
