#include "ops/chain/volume_rows.h"

#include "ops/chain/scalar_voxels.h"
#include "ops/chain/volume_loops.h"

namespace patchbay::ops {

const VolumeLoops& ScalarVolumeLoops() {
  static constexpr VolumeLoops kLoops = VolumeLoopsOf<ScalarLanes>();
  return kLoops;
}

}  // namespace patchbay::ops
