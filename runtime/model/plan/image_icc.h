// The ICC lookups of a plan's images: which colours each of them becomes under icc_to_srgb.
#pragma once

#include <vector>

#include "runtime/core/status.h"
#include "runtime/model/plan/plan.h"

namespace patchbay::plan {

/// The step that needs the profiles of images: the first in either list.
FoundOp FindIccOp(const OpLists& lists);

/// Leaves each image what the config's icc_to_srgb needs, and nothing without it. InvalidArgument
/// when an image lacks it, when it is not three channels of uint8, and under `missing: refuse` when
/// it has no lookup.
Status SettleIcc(const RunConfig& config, std::vector<PlannedImage>& images);

}  // namespace patchbay::plan
