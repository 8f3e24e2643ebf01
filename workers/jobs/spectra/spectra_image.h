// An image as the spectra job measures it.
#pragma once

#include <memory>
#include <string>

#include "workers/jobs/spectra/grid.h"
#include "workers/jobs/spectra/spectra_staging.h"
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

}  // namespace patchbay::workers
