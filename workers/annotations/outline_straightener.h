// Traced outlines with fewer vertices.
#pragma once

#include "workers/annotations/outline_tracer.h"

namespace patchbay::workers {

/// Takes vertices out of the rings as long as every one that is gone lies within `tolerance` pixels
/// of the line in its place. Rings of a valid polygon stay valid: they neither cross nor touch
/// themselves or one another, and every hole stays within its outline. Rings keep three vertices.
void Straighten(TracedPolygon& polygon, double tolerance);

}  // namespace patchbay::workers
