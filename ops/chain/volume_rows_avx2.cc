// The loops of volumes eight values at a time.
#include "ops/chain/avx2_voxels.h"
#include "ops/chain/scalar_voxels.h"
#include "ops/chain/volume_loops.h"

namespace patchbay::ops {

const VolumeLoops& Avx2VolumeLoops() {
  static constexpr VolumeLoops kLoops = VolumeLoopsOf<Avx2Lanes>();
  return kLoops;
}

}  // namespace patchbay::ops
