// The stain parameters of a plan's images: what workers normalise from, so that none of them
// decides.
#pragma once

#include <vector>

#include "runtime/core/status.h"
#include "runtime/format/json/json.h"
#include "runtime/model/plan/plan.h"

namespace patchbay::plan {

/// Leaves each image what the config's stain_normalize needs, and nothing without it.
/// InvalidArgument when an image lacks it, when it is not three channels of uint8, when a reference
/// is not settled, or when an image names none of them.
Status SettleStains(const RunConfig& config, std::vector<PlannedImage>& images);

/// One row an image: its values, where references go by scanner the number of its own, and the name
/// of the fallback if there is one. Null without stain_normalize.
Json StainsToJson(const RunConfig& config, const std::vector<PlannedImage>& images);
/// InvalidArgument for what StainsToJson does not give of so many images.
Status StainsFromJson(const RunConfig& config, const Json& rows, std::vector<PlannedImage>& images);

}  // namespace patchbay::plan
