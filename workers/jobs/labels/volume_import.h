// A segmentation into the store of a volume: its classes, and their connected parts.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "runtime/core/extent.h"
#include "runtime/model/plan/class_table.h"
#include "runtime/model/positions/component_index.h"
#include "runtime/os/available_memory.h"
#include "workers/jobs/labels/revision.h"
#include "workers/sources/volumes/label_volume.h"
#include "workers/sources/volumes/volume.h"

namespace patchbay::workers {

/// RunLabelsImport for a row whose store is a volume: brings NIfTI, NRRD, .seg.nrrd, MHA or DICOM
/// SEG onto the image's grid. The label image also gets the index of class positions, the index of
/// components, and the histogram of Hounsfield units under each class.
StatusOr<TaskOutput> ImportVolume(TaskContext& context, const LabelsRequest& request,
                                  const ImportRow& row);

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

/// `voxels` are size.Pixels() values, x fastest; values without a class are ignored. Time and
/// memory grow with the runs of equal voxels along x: ResourceExhausted before `room` is exceeded.
/// `progress` is called a few times for every slice; its error ends the work.
StatusOr<plan::ComponentIndex> FindComponents(const plan::ClassTable& classes,
                                              std::span<const std::uint8_t> voxels,
                                              const Extent& size, const MemoryBudget& room,
                                              const VolumeProgress& progress);

}  // namespace patchbay::workers
