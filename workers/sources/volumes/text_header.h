// NRRD and MetaImage: a text header, then voxels, in one file.
#pragma once

#include <string>

#include "workers/sources/volumes/dicom_volume.h"
#include "workers/sources/volumes/volume.h"

namespace patchbay::workers {

/// NRRD with its voxels attached: raw or gzip, three axes, a patient space (LPS or RAS). Without a
/// space it takes kAccept, as NIfTI without orientation. InvalidArgument for skewed axes and what
/// is malformed, Unimplemented for detached voxels, other encodings and further axes.
StatusOr<Volume> ReadNrrd(const std::string& path, GeometryPolicy policy,
                          const VolumeProgress& progress);

/// MetaImage with ElementDataFile = LOCAL, raw or compressed. The same rules.
StatusOr<Volume> ReadMetaImage(const std::string& path, GeometryPolicy policy,
                               const VolumeProgress& progress);

}  // namespace patchbay::workers
