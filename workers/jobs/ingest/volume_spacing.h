// A volume onto the spacing a job asks for, before it is written.
#pragma once

#include <array>

#include "workers/sources/volumes/volume.h"

namespace patchbay::workers {

/// Millimetres along z, y, x.
using SpacingMm = std::array<double, 3>;

/// Resamples to the nearest whole number of voxels over the same place (halves to even, as
/// nnU-Net), so that the spacing differs from the one asked for by less than half a voxel over the
/// whole volume; the affine and the log say what it is. int16 stays int16, rounded and clamped.
/// Slices lie at other places then: the table of them is emptied. ResourceExhausted without the
/// memory.
Status ResampleTo(const SpacingMm& spacing, int order, const VolumeProgress& progress,
                  Volume& volume);

}  // namespace patchbay::workers
