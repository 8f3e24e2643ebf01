// The provider of statistics (statistics.h) kCtForeground: the numbers of ct_normalize.
#pragma once

#include <vector>

#include "workers/jobs/plan/statistics.h"

namespace patchbay::workers {

/// Whether ct_normalize is without its numbers.
bool NeedsForeground(const plan::RunConfig& config);

/// {"lower", "upper", "mean", "std", "voxels", "window": [low, high] or null}: of the voxels of
/// those images that labels.set has as foreground: sampling.foreground.classes or, without, all
/// classes but `background`. From the histograms that `labels import` left.
StatusOr<Json> ForegroundOf(TaskContext& context, const plan::RunConfig& config,
                            const std::vector<TrainingImage>& images);

}  // namespace patchbay::workers
