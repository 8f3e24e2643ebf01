// Finds the frames of an image that lie on tissue, with a mask made from a thumbnail of the image.
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

/// The definition of masks, for `definition.tissue`.
Json TissueDefinition();

/// The mask of an RGB image, from its TissuePictureOf, whose errors it returns.
StatusOr<ops::TissueMask> TissueMaskOf(TaskContext& context, const ImageSource& image);

/// A mask as bytes, and back. DataLoss on anything EncodeTissueMask did not write.
std::string EncodeTissueMask(const ops::TissueMask& mask);
StatusOr<ops::TissueMask> DecodeTissueMask(std::string_view bytes);

/// A byte per frame of `frames`, row-major: 0 off tissue.
StatusOr<std::vector<std::uint8_t>> FramesOnTissue(const ops::TissueMask& mask,
                                                   const SpectraGrid& grid,
                                                   const ops::FrameRange& frames);

}  // namespace patchbay::workers
