#include "workers/jobs/plan/image_row.h"

#include <algorithm>

#include "runtime/core/strings.h"

namespace patchbay::workers {
namespace {

/// Scales position `at` of an axis of `full` pixels to one of `size`, rounded to the nearest pixel.
std::int32_t Scaled(std::int64_t at, std::int64_t size, std::int64_t full) {
  const std::int64_t scaled = (2 * at * size + full) / (2 * full);
  return static_cast<std::int32_t>(std::min(scaled, size - 1));
}

}  // namespace

std::vector<plan::ListedRun> ListedSequenceOf(std::span<const plan::ListedRun> by_row,
                                              std::span<const std::uint64_t> rows) {
  std::vector<plan::ListedRun> order;
  for (const plan::ListedRun& run : by_row) {
    const auto at = std::lower_bound(rows.begin(), rows.end(), run.image);
    if (at == rows.end() || *at != run.image) continue;
    plan::AppendListed(static_cast<std::uint32_t>(at - rows.begin()), run.places, order);
  }
  return order;
}

StatusOr<std::vector<plan::PlanePoint>> PlacesAtLevel(std::vector<plan::PlanePoint> places,
                                                      const ImageLayout& layout,
                                                      const plan::PlannedImage& image) {
  const Extent& full = layout.levels.front().size;
  for (plan::PlanePoint& place : places) {
    if (place.y >= full.y || place.x >= full.x) {
      return InvalidArgument("key 'sampling.positions': the table's place x ", place.x, ", y ",
                             place.y, " is not in the slide, whose level 0 has ", full.x, " x ",
                             full.y, " pixels; is it of another level, or another slide?");
    }
    place = {Scaled(place.y, image.size.y, full.y), Scaled(place.x, image.size.x, full.x)};
  }
  return places;
}

}  // namespace patchbay::workers
