// Resampling of a volume to the spacing that an ingest asks for.
#pragma once

#include "runtime/core/status.h"
#include "runtime/model/jobs/ingest_settings.h"
#include "workers/sources/volumes/volume.h"

namespace patchbay::workers {

/// Resamples to the nearest whole number of voxels over the same place (halves to even, as
/// nnU-Net), so that the spacing differs from the requested one by less than half a voxel over the
/// whole volume; affine and log have the actual one. int16 stays int16, rounded and clamped. The
/// table of slice positions is emptied, since slices move. ResourceExhausted when memory is short.
Status ResampleToSpacing(const IngestSettings& settings, const VolumeProgress& progress,
                         Volume& volume);

}  // namespace patchbay::workers
