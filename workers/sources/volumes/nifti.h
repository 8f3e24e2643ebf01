// NIfTI-1 and NIfTI-2 in one file, .nii or .nii.gz.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "runtime/os/folders.h"
#include "workers/sources/volumes/dicom_volume.h"
#include "workers/sources/volumes/raw_voxels.h"
#include "workers/sources/volumes/volume.h"

namespace patchbay::workers {

/// Geometry by sform, else qform, else pixdim: pixdim does not define left and right, so it needs
/// kAccept. InvalidArgument for a skewed sform and malformed headers, Unimplemented for 4-D, colour
/// and complex voxels, DataLoss for a file that ends early.
StatusOr<RawVolume> ReadNiftiHeader(const Folders& allowed, const std::string& path,
                                    GeometryPolicy policy);

/// An uncompressed NIfTI-1 file of uint8 classes, with its geometry as sform. `values` are
/// size.Pixels(), x fastest. Sides of up to 32,767.
Status WriteNiftiMask(const Folders& allowed, const std::string& path, const Extent& size,
                      const Affine& affine, std::span<const std::uint8_t> values);

}  // namespace patchbay::workers
