// Chains of volumes on a GPU, for patchbay-bench-gpu.
#pragma once

#include <cstdint>

#include "runtime/core/status.h"

namespace patchbay::bench {

/// Prints a figure for each chain: `patches` patches of side^3 voxels of int16 to float16, and
/// their labels, from boxes in device memory, beside a copy of as many bytes. On the GPU selected;
/// side >= 24.
Status MeasureVolumes(std::int64_t patches, std::int64_t side);

}  // namespace patchbay::bench
