// How sure a model was of an outline: the mean of its class's probability within it.
#pragma once

#include <optional>
#include <vector>

#include "workers/annotations/outline_tracer.h"
#include "workers/jobs/labels/opened_labels.h"

namespace patchbay::workers {

/// One for each polygon, as traced in pixels of the image's level 0; those that no patch covered do
/// not count. None for classes that are no channel of the map, and for all where the labels are of
/// no class map, or its map is gone. InvalidArgument for a map that is not of the class map.
StatusOr<std::vector<std::optional<double>>> MeanProbabilities(
    TaskContext& context, const OpenedLabels& labels, const std::vector<TracedPolygon>& polygons);

}  // namespace patchbay::workers
