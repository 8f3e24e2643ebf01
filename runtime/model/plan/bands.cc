#include "runtime/model/plan/bands.h"

#include <algorithm>

#include "runtime/model/plan/image_views.h"
#include "runtime/model/plan/plan.h"

namespace patchbay::plan {
namespace {

/// Patches of a row of the image's grid; 1 where some of its cells are no patches.
std::uint64_t RowPatches(const RunConfig& config, const PlannedImage& image,
                         std::uint64_t patches) {
  if (config.positions != Positions::kGrid) return 1;
  const Extent cells = CellsOfGrid(config, image);
  const auto row = static_cast<std::uint64_t>(cells.z > 1 ? cells.y * cells.x : cells.x);
  const auto rows = static_cast<std::uint64_t>(cells.z > 1 ? cells.z : cells.y);
  return patches % row == 0 && patches / row == rows ? row : 1;
}

}  // namespace

std::vector<std::uint64_t> CutBands(std::uint64_t patches, std::uint64_t row_patches) {
  const std::uint64_t rows = std::max<std::uint64_t>(1, kBandPatches / row_patches);
  const std::uint64_t band = rows * row_patches;
  const std::uint64_t count = std::max<std::uint64_t>(1, (patches + band / 2) / band);
  std::vector<std::uint64_t> bands(count, band);
  bands.back() = patches - (count - 1) * band;
  return bands;
}

std::vector<std::uint64_t> BandsOf(const RunConfig& config, const std::vector<PlannedImage>& images,
                                   const std::vector<std::uint64_t>& patches_of_images) {
  std::vector<std::uint64_t> found;
  for (std::size_t i = 0; i < patches_of_images.size(); ++i) {
    const std::uint64_t patches = patches_of_images[i];
    const std::vector<std::uint64_t> bands =
        CutBands(patches, RowPatches(config, images[i], patches));
    found.insert(found.end(), bands.begin(), bands.end());
  }
  return found;
}

std::vector<std::uint64_t> FirstUnits(std::span<const std::uint64_t> cumulative_patches,
                                      const UnitRuns& units) {
  std::vector<std::uint64_t> first;
  std::uint64_t unit = 0;
  for (const std::uint64_t before : cumulative_patches) {
    while (unit < units.units() && units.At(unit).first_ordinal < before) ++unit;
    first.push_back(unit);
  }
  return first;
}

}  // namespace patchbay::plan
