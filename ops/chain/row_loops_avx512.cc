// The row loops sixteen values at a time.
#define HWY_BASELINE_TARGETS HWY_AVX3
#include "ops/chain/wide_row_loops.h"

namespace patchbay::ops {

const RowLoops& Avx512RowLoops() {
  static constexpr RowLoops kLoops = LoopsOf<WideLanes>("avx512");
  return kLoops;
}

}  // namespace patchbay::ops
