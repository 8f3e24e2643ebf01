// The statistics of a range of an image's frames.
#pragma once

#include <cstdint>
#include <vector>

#include "workers/jobs/spectra/grid.h"
#include "workers/jobs/spectra/settings.h"
#include "workers/jobs/spectra/strip_result.h"
#include "workers/jobs/task/task.h"

namespace patchbay::workers {

/// An image and the frames of it to measure.
struct StripRequest {
  const ImageSource& image;
  const SpectraSettings& settings;
  ops::FrameRange frames;
  /// A byte a frame of `frames`, row-major: 0 is left out (off tissue). Empty: all.
  std::vector<std::uint8_t> wanted;
};

/// Moves the task's progress. What comes back depends on the frames only: a frame is left out, or
/// the first damaged tile named, in the same way however the image is cut into strips. `result`
/// has no `coefficients` yet; they are in its sums.
StatusOr<StripResult> MeasureStrip(TaskContext& context, const StripRequest& order);

}  // namespace patchbay::workers
