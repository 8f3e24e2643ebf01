// Patches of a store of tiles, none of which may cross from one tile to another.
#pragma once

#include "runtime/core/extent.h"
#include "runtime/core/status.h"
#include "runtime/model/plan/plan.h"
#include "runtime/model/plan/run_config.h"

namespace patchbay::workers {

/// InvalidArgument, naming the key, unless each patch of the config lies in one tile: those of a
/// grid are the tiles, listed ones lie anywhere in theirs, and random ones would not keep to them.
Status CheckTilePatches(const plan::RunConfig& config, const plan::PlannedImage& image,
                        const Extent& tile);

}  // namespace patchbay::workers
