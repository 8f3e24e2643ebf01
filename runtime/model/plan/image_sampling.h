// Facts of a plan's images for sampling: the counts of their places, the groups they
// are in, the places of a table.
#pragma once

#include <cstddef>
#include <vector>

#include "runtime/core/status.h"
#include "runtime/format/json/json.h"
#include "runtime/model/plan/plan.h"

namespace patchbay::plan {

/// Whether patches of a set of places lie anywhere in the image.
bool IsAnywhere(const RunConfig& config, std::size_t set);

/// InvalidArgument unless the image has the places and groups that sampling asks for.
Status CheckSampled(const RunConfig& config, const PlannedImage& image);

/// The members of a plan's text: "places", "groups", "positions", as far as the config needs them.
Json SampledToJson(const RunConfig& config, const std::vector<PlannedImage>& images);
/// InvalidArgument for what SampledToJson does not give of so many images.
Status SampledFromJson(const Json& plan, std::vector<PlannedImage>& images);

}  // namespace patchbay::plan
