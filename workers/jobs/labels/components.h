// The connected parts of each class of a volume.
#pragma once

#include <cstdint>
#include <span>

#include "runtime/base/extent.h"
#include "runtime/plan/class_table.h"
#include "runtime/plan/component_index.h"

namespace patchbay::workers {

/// `voxels` are size.Pixels() values, x fastest; values that are not a class are passed over. Time
/// and memory go by the runs of equal voxels along x.
plan::ComponentIndex FindComponents(const plan::ClassTable& classes,
                                    std::span<const std::uint8_t> voxels, const Extent& size);

}  // namespace patchbay::workers
