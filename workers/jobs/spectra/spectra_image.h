// An image as the spectra job measures it, and its frames that lie on tissue, by a mask made from a
// thumbnail.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "ops/tissue/tissue_mask.h"
#include "workers/jobs/spectra/grid.h"
#include "workers/jobs/spectra/spectra_staging.h"
#include "workers/jobs/task/task.h"
#include "workers/sources/image_source.h"

namespace patchbay::workers {

struct SpectraImage {
  std::unique_ptr<ImageSource> source;
  SpectraGrid grid;
};

/// Opens the task's image, which must have the task's stamp. FailedPrecondition: it changed;
/// InvalidArgument: smaller than a frame; Unimplemented: unsupported pixels. All messages give the
/// reason.
StatusOr<SpectraImage> OpenSpectraImage(const SpectraTask& task);

/// Micrometres per pixel of level 0, the mean of both directions; absent when the file does not
/// state them.
std::optional<double> MppOf(const ImageLayout& layout);

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
