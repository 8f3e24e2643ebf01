// Facts of volumes in a plan besides their voxels: spacing and statistics, where the ops need them,
// so that no worker has to determine them.
#pragma once

#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/core/status.h"
#include "runtime/model/ops/op_list.h"
#include "runtime/model/plan/plan_fields.h"

namespace patchbay::plan {

inline constexpr std::string_view kOverBody = "body", kOverNonzero = "nonzero", kOverMask = "mask";

/// Statistics of an image's values that an op needs (OpNeeds::body). Its options say which: `over`
/// and `mask`, or `range` for percentiles.
struct ValuesNeeded {
  std::string op;    ///< its name
  std::string over;  ///< the voxels that count: "body", "nonzero", "image" or "mask"
  std::string mask;  ///< the label set, for "mask"
  std::optional<std::array<double, 2>> percentiles;  ///< absent: mean and deviation

  static constexpr auto Fields() {
    using T = ValuesNeeded;
    return AsObject(Field("op", &T::op), Field("over", &T::over), Field("mask", &T::mask),
                    Field("percentiles", &T::percentiles));
  }
};
ValuesNeeded ValuesNeededBy(const OpRow& op, const Json& options);

/// Facts of each image that the ops of a config need, as a payload names them.
struct VolumeNeeds {
  FactsNeeded facts;
  std::optional<ValuesNeeded> values;  ///< set with facts.body
  std::optional<ValueWindow> window;   ///< window of these statistics

  bool Any() const { return facts.spacing || facts.body; }
  static constexpr auto Fields() {
    using T = VolumeNeeds;
    return AsObject(Field("facts", &T::facts), Field("values", &T::values),
                    Field("window", &T::window));
  }
};
VolumeNeeds VolumeNeedsOf(const RunConfig& config);

/// Keeps the facts of each image that the config's ops need, and removes the others.
/// InvalidArgument when an image lacks a needed fact.
Status SettleVolumes(const RunConfig& config, std::vector<PlannedImage>& images);

}  // namespace patchbay::plan

namespace patchbay {

template <>
struct FieldsOf<plan::FactsNeeded> {
  static constexpr auto List() {
    using T = plan::FactsNeeded;
    return AsObject(Field("spacing", &T::spacing), Field("body", &T::body));
  }
};

template <>
struct FieldsOf<plan::ValueWindow> {
  static constexpr auto List() {
    using T = plan::ValueWindow;
    return AsArray(Field("low", &T::low), Field("high", &T::high));
  }
};

}  // namespace patchbay

/// [spacing along z, y and x in millimetres, mean, deviation]; where patches are resampled also the
/// voxels of the level for one of theirs along z, y and x, and the axis of
/// VolumeFacts::nearest_axis if there is one. Mean and deviation are lists where there are several
/// channels.
template <>
struct patchbay::JsonForm<patchbay::plan::VolumeFacts> {
  static Json To(const plan::VolumeFacts& facts);
  static StatusOr<plan::VolumeFacts> From(const Json& row);
};
