// The float loops eight values at a time.
#include "ops/chain/avx2_lanes.h"
#include "ops/chain/float_loops.h"

namespace patchbay::ops {

const RowLoops& Avx2RowLoops() {
  static constexpr RowLoops kLoops = LoopsOf<Avx2Lanes>("avx2");
  return kLoops;
}

}  // namespace patchbay::ops
