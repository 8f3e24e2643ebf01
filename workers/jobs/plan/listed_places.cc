#include "workers/jobs/plan/listed_places.h"

#include <algorithm>

#include "runtime/core/strings.h"
#include "workers/access/planned_images.h"

namespace patchbay::workers {
namespace {

/// Of `size` pixels that stand for `full`; to the nearest one.
std::int32_t Scaled(std::int64_t at, std::int64_t size, std::int64_t full) {
  const std::int64_t scaled = (2 * at * size + full) / (2 * full);
  return static_cast<std::int32_t>(std::min(scaled, size - 1));
}

}  // namespace

StatusOr<std::vector<std::string>> ListedPositionsOf(const Json& manifest, std::size_t count) {
  const Json table = manifest.is_object() ? manifest.value("table", Json()) : Json();
  if (!table.is_object() || !table.contains("positions")) return std::vector<std::string>();
  PB_ASSIGN_OR_RETURN(std::vector<std::string> positions, ManifestPaths(table, "positions"));
  if (positions.size() == count) return positions;
  return absl::InvalidArgumentError("stream manifest: positions: not one text an image");
}

StatusOr<std::vector<plan::ListedRun>> ListedSequenceOf(const Json& manifest,
                                                        const plan::RunConfig& config,
                                                        std::span<const std::size_t> rows) {
  const bool is_asked =
      config.positions == plan::Positions::kListed && config.order == plan::Order::kSequential;
  if (!is_asked) return std::vector<plan::ListedRun>();
  constexpr std::string_view kWhat = "stream manifest: table";
  PB_ASSIGN_OR_RETURN(const Json* table, JsonMember(manifest, "table", kWhat));
  PB_ASSIGN_OR_RETURN(const std::string text, JsonString(*table, "positions_order", kWhat));
  PB_ASSIGN_OR_RETURN(const std::vector<plan::ListedRun> by_row, plan::DecodeListedRuns(text));
  std::vector<plan::ListedRun> order;
  for (const plan::ListedRun& run : by_row) {
    const auto at = std::lower_bound(rows.begin(), rows.end(), run.image);
    if (at == rows.end() || *at != run.image) continue;
    plan::AppendListed(static_cast<std::uint32_t>(at - rows.begin()), run.places, order);
  }
  return order;
}

StatusOr<std::vector<plan::PlanePoint>> PlacesAtLevel(const std::string& positions,
                                                      const ImageLayout& layout,
                                                      const plan::PlannedImage& image) {
  PB_ASSIGN_OR_RETURN(std::vector<plan::PlanePoint> places, plan::DecodePositions(positions));
  const Extent& full = layout.levels.front().size;
  for (plan::PlanePoint& place : places) {
    if (place.y >= full.y || place.x >= full.x) {
      return absl::InvalidArgumentError(
          StrCat("key 'sampling.positions': the table's place x ", place.x, ", y ", place.y,
                 " is not in the slide, whose level 0 has ", full.x, " x ", full.y,
                 " pixels; is it of another level, or another slide?"));
    }
    place = {Scaled(place.y, image.size.y, full.y), Scaled(place.x, image.size.x, full.x)};
  }
  return places;
}

}  // namespace patchbay::workers
