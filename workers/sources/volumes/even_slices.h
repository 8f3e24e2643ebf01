// Slices at any places onto a grid: equal steps along the normal, no shift across it.
#pragma once

#include <vector>

#include "workers/sources/volumes/volume.h"

namespace patchbay::workers {

/// Resamples a volume whose slices lie at `places_mm` (ascending, along the slice normal) and at
/// volume.slice_positions, onto steps of `step_mm`: first every slice by its own shift across the
/// stack (linear, with -1024 where nothing was scanned; the grid grows so that nothing is lost),
/// then linear between neighbouring slices. Records the step in the volume's log and makes its
/// affine orthogonal. Values are rounded to the volume's type.
Status MakeEven(Volume& volume, const std::vector<double>& places_mm, double step_mm);

}  // namespace patchbay::workers
