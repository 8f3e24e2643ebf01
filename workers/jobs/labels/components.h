// The connected parts of each class of a volume.
#pragma once

#include <cstdint>
#include <span>

#include "runtime/core/extent.h"
#include "runtime/model/plan/class_table.h"
#include "runtime/model/plan/component_index.h"
#include "runtime/os/available_memory.h"
#include "workers/sources/volumes/volume.h"

namespace patchbay::workers {

/// `voxels` are size.Pixels() values, x fastest; values without a class are ignored. Time and
/// memory grow with the runs of equal voxels along x: ResourceExhausted before `room` is exceeded.
/// `progress` is called a few times for every slice; its error ends the work.
StatusOr<plan::ComponentIndex> FindComponents(const plan::ClassTable& classes,
                                              std::span<const std::uint8_t> voxels,
                                              const Extent& size, const MemoryBudget& room,
                                              const VolumeProgress& progress);

}  // namespace patchbay::workers
