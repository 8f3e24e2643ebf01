// Which frames of an image lie on tissue: a mask from a small picture of the whole.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "ops/tissue/tissue_mask.h"
#include "workers/jobs/spectra/grid.h"
#include "workers/jobs/task/task.h"

namespace patchbay::workers {

/// A frame is on tissue when at least this part of its pixels lies under the mask.
inline constexpr double kTissueFraction = 0.5;
/// Pixels of level 0 along the side of one of the picture, or a little more for the largest images.
inline constexpr std::int64_t kTissueDownsample = 32;

/// How masks are made, as `definition.tissue` says it.
Json TissueDefinition();

/// The mask of an RGB image. Reads its coarsest level that is fine enough, and averages that; an
/// image without a pyramid is decoded once for it. Moves the task's progress. DataLoss names a tile
/// of that level.
StatusOr<ops::TissueMask> TissueMaskOf(TaskContext& context, const ImageSource& image);

/// A mask as bytes, and back. DataLoss on anything EncodeTissueMask did not write.
std::string EncodeTissueMask(const ops::TissueMask& mask);
StatusOr<ops::TissueMask> DecodeTissueMask(std::string_view bytes);

/// A byte a frame of `frames`, row-major: 0 off tissue.
StatusOr<std::vector<std::uint8_t>> FramesOnTissue(const ops::TissueMask& mask,
                                                   const SpectraGrid& grid,
                                                   const ops::FrameRange& frames);

}  // namespace patchbay::workers
