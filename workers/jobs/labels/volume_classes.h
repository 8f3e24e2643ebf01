// Maps a segmentation's values and segments to the classes of a table.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "runtime/model/plan/class_table.h"
#include "workers/sources/volumes/label_volume.h"

namespace patchbay::workers {

/// The classes of a segmentation's voxels on its own grid.
struct VoxelClasses {
  std::vector<std::uint8_t> values;  ///< values of the class table, or ignored
  std::vector<std::string> skipped;  ///< segments of the table's `skip`
  std::uint64_t overlapping = 0;     ///< voxels of several segments
};

/// Values by the table (and its `from` of that site); segments by their names, painted in the
/// table's order, so that of several in one voxel the one further down the table wins.
/// InvalidArgument: values or names that the table does not have, all of them named.
StatusOr<VoxelClasses> ClassesOf(const plan::ClassTable& table, const std::string& site,
                                 LabelVolume labels, const VolumeProgress& progress);

}  // namespace patchbay::workers
