// DICOM RTSTRUCT: structures drawn as contours on the slices of an image.
#pragma once

#include <string>

#include "runtime/os/folders.h"
#include "workers/sources/volumes/label_volume.h"

namespace patchbay::workers {

/// Whether the file is a DICOM structure set.
bool IsStructureSet(const Folders& allowed, const std::string& path);

/// The structures on slices of the grid, which lie along its z; a grid that is larger by whole
/// voxels where contours reach beyond it. A voxel is in where its centre is within an odd number of
/// a structure's contours in its slice; POINT and open contours are counted in `left_out`.
/// InvalidArgument: no structure set, a contour across slices or between them (each named by its
/// structure), several frames of reference, more contours or points than kMaxContours and
/// kMaxContourPoints. Messages name structures, and no path.
StatusOr<LabelVolume> ReadStructureSet(const Folders& allowed, const std::string& path,
                                       const Extent& size, const Affine& affine,
                                       const VolumeProgress& progress);

inline constexpr std::size_t kMaxContours = 1u << 20;
inline constexpr std::size_t kMaxContourPoints = 1u << 26;

}  // namespace patchbay::workers
