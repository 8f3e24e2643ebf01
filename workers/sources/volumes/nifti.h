// NIfTI-1 and NIfTI-2 in one file, .nii or .nii.gz.
#pragma once

#include <string>

#include "runtime/os/folders.h"
#include "workers/sources/volumes/dicom_volume.h"
#include "workers/sources/volumes/raw_voxels.h"
#include "workers/sources/volumes/volume.h"

namespace patchbay::workers {

/// Geometry by sform, else qform, else pixdim: pixdim does not define left and right, so it needs
/// kAccept. The volumes along a fourth axis are channels, up to kMaxChannels. InvalidArgument for a
/// skewed sform and malformed headers, Unimplemented for more axes, colour and complex voxels,
/// DataLoss for a file that ends early.
StatusOr<RawVolume> ReadNiftiHeader(const Folders& allowed, const std::string& path,
                                    GeometryPolicy policy);

}  // namespace patchbay::workers
