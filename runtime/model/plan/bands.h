// The bands of a map: an image with many patches is several units, so that several consumers work
// on it at once.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "runtime/model/plan/run_config.h"
#include "runtime/model/stream/unit_runs.h"

namespace patchbay::plan {

struct PlannedImage;

/// About as many patches as a band has. Larger means fewer bands, whose edges rest on disk until
/// the image is joined; smaller means less lost with a consumer that is killed.
inline constexpr std::uint64_t kBandPatches = 4'096;

/// The bands of an image, in order: all of its patches, one band below 1.5 x kBandPatches. They end
/// with whole rows of `row_patches`; 1 where an image has no such rows.
std::vector<std::uint64_t> CutBands(std::uint64_t patches, std::uint64_t row_patches);

/// The bands of all images of a map, whose patches are counted, in order. An image with every cell
/// of its grid ends them with rows of it, a volume with planes.
std::vector<std::uint64_t> BandsOf(const RunConfig& config, const std::vector<PlannedImage>& images,
                                   const std::vector<std::uint64_t>& patches_of_images);

/// The first unit of each image, and the one behind the last image's. `cumulative_patches` of
/// images [0, i): size images + 1; no unit crosses an image.
std::vector<std::uint64_t> FirstUnits(std::span<const std::uint64_t> cumulative_patches,
                                      const UnitRuns& units);

}  // namespace patchbay::plan
