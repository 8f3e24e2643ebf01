// DICOM SEG: segments with labels, a bit per voxel, frame by frame.
#pragma once

#include <string>
#include <string_view>

#include "runtime/os/folders.h"
#include "workers/sources/volumes/label_volume.h"

namespace patchbay::workers {

inline constexpr std::string_view kSegmentationClass = "1.2.840.10008.5.1.4.1.1.66.4";

/// A binary segmentation. Frames lie on one grid of parallel slices; slices without a frame are
/// empty. Segments may overlap. Unimplemented: fractional ones and label maps. InvalidArgument: no
/// segmentation, frames of several orientations or off the grid, a frame of a segment that is not
/// listed. DataLoss: fewer bits than its frames have.
StatusOr<LabelVolume> ReadDicomSegmentation(const Folders& allowed, const std::string& path,
                                            const VolumeProgress& progress);

}  // namespace patchbay::workers
