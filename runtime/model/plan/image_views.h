// The levels and boxes that patch.mpp or patch.spacing chose for a plan's images, checked and as
// text.
#pragma once

#include <vector>

#include "runtime/core/status.h"
#include "runtime/format/json/json.h"
#include "runtime/model/plan/plan.h"

namespace patchbay::plan {

/// From one cell of an image's grid to the next, in pixels of its level, and how many there are.
Extent StepOf(const RunConfig& config, const PlannedImage& image);
Extent CellsOfGrid(const RunConfig& config, const PlannedImage& image);

/// Every image has a view for each mpp, or one for the spacing, and none without. InvalidArgument
/// naming the key for what several mpp exclude: random crops. Images are settled.
Status CheckViews(const RunConfig& config, const std::vector<PlannedImage>& images);

}  // namespace patchbay::plan
