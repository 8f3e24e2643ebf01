// What sampling knows of a plan's images: the counts of their places and the groups they are in.
#pragma once

#include <cstddef>
#include <vector>

#include "runtime/base/json.h"
#include "runtime/base/status.h"
#include "runtime/plan/plan.h"

namespace patchbay::plan {

/// Whether patches of a set of places lie anywhere in the image.
bool IsAnywhere(const RunConfig& config, std::size_t set);

/// InvalidArgument unless the image has the places and groups that sampling asks for.
Status CheckSampled(const RunConfig& config, const PlannedImage& image);

/// {"indexes", "counts"} of every image.
Json PlacesToJson(const std::vector<PlannedImage>& images);
Json GroupsToJson(const std::vector<PlannedImage>& images);
/// Takes the members "places" and "groups" of a plan. InvalidArgument for another form.
Status SampledFromJson(const Json& plan, std::vector<PlannedImage>& images);

}  // namespace patchbay::plan
