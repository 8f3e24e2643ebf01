// The levels and boxes that patch.mpp or patch.spacing chose for a plan's images, checked and as
// text.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "runtime/core/extent.h"
#include "runtime/core/status.h"
#include "runtime/format/json/json.h"
#include "runtime/model/plan/plan.h"
#include "runtime/model/plan/run_config.h"

namespace patchbay::plan {

inline Extent StrideOf(const RunConfig& config) {
  return config.stride.Empty() ? config.patch : config.stride;
}

/// Cells of a grid of boxes of size `patch`, from the origin on: enough to cover every pixel,
/// unless the stride is longer than the patch.
inline Extent GridOf(const Extent& size, const Extent& patch, const Extent& stride) {
  const auto cells = [](std::int64_t whole, std::int64_t side, std::int64_t step) {
    return (std::max<std::int64_t>(0, whole - side) + step - 1) / step + 1;
  };
  return {cells(size.z, patch.z, stride.z), cells(size.y, patch.y, stride.y),
          cells(size.x, patch.x, stride.x)};
}

/// From one cell of an image's grid to the next, in pixels of its level, and how many there are.
Extent StepOf(const RunConfig& config, const PlannedImage& image);
Extent CellsOfGrid(const RunConfig& config, const PlannedImage& image);

/// Checks that every image has a view for each mpp, one for the spacing, or none without either.
/// InvalidArgument, naming the key, for random crops together with several mpp. Call after the
/// images are settled.
Status CheckViews(const RunConfig& config, const std::vector<PlannedImage>& images);

}  // namespace patchbay::plan
