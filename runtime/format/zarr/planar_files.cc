#include "runtime/format/zarr/planar_files.h"

#include <algorithm>

#include "runtime/format/zarr/label_sets.h"
#include "runtime/format/zarr/opened_store.h"

namespace patchbay::zarr {

Extent PlanarChunkOf(const Extent& level) {
  return {1, std::min(kPlanarSide, level.y), std::min(kPlanarSide, level.x)};
}

StatusOr<std::uint64_t> PlanarFilesOf(const Folders& allowed, const std::string& store) {
  constexpr std::int64_t kDocuments = 8;
  PB_ASSIGN_OR_RETURN(const OpenedStore opened, OpenStore(allowed, store));
  PB_ASSIGN_OR_RETURN(const auto sets, ReadLabelSets(allowed, store));
  const auto images = 1 + static_cast<std::int64_t>(sets.size());
  std::int64_t files = kDocuments;
  for (const OpenedLevel& level : opened.levels) {
    const std::int64_t slices = CellsOf(level.size, PlanarChunkOf(level.size)).Pixels();
    files += images + slices * (opened.settings.channels + images - 1);
  }
  return static_cast<std::uint64_t>(files);
}

}  // namespace patchbay::zarr
