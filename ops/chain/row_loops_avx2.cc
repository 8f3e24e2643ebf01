// The row loops eight values at a time.
#define HWY_BASELINE_TARGETS HWY_AVX2
#include "ops/chain/wide_row_loops.h"

namespace patchbay::ops {

const RowLoops& Avx2RowLoops() {
  static constexpr RowLoops kLoops = LoopsOf<WideLanes>("avx2");
  return kLoops;
}

}  // namespace patchbay::ops
