// The places that a user's table lists, from pixels of level 0 to those of the level that patches
// are cut from.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "runtime/core/status.h"
#include "runtime/model/plan/plan.h"
#include "workers/sources/image_source.h"

namespace patchbay::workers {

/// The order of a table's places, by number of the plan's images, from `by_row`, which goes by
/// row: `rows` are the images', rising; what the table lists for others is left out.
std::vector<plan::ListedRun> ListedSequenceOf(std::span<const plan::ListedRun> by_row,
                                              std::span<const std::uint64_t> rows);

/// Rounded to the nearest pixel of the planned image's level. InvalidArgument naming the first
/// place that is not in the image.
StatusOr<std::vector<plan::PlanePoint>> PlacesAtLevel(std::vector<plan::PlanePoint> places,
                                                      const ImageLayout& layout,
                                                      const plan::PlannedImage& image);

}  // namespace patchbay::workers
