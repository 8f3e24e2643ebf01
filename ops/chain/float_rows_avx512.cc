// The float loops sixteen values at a time. What is not a template is included before the pragma:
// it stays code for every machine.
#include <cstring>
#include <type_traits>

#include <immintrin.h>

#include "ops/chain/float_rows.h"
#include "ops/chain/scalar_lanes.h"

// GCC 12 takes what its own intrinsics leave undefined for a use of an uninitialised value.
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#pragma GCC diagnostic ignored "-Wuninitialized"
#ifdef __clang__
#pragma clang attribute push(__attribute__((target("avx512f,avx512dq,avx512bw,avx512vl"))), \
                             apply_to = function)
#else
#pragma GCC target("avx512f,avx512dq,avx512bw,avx512vl")
#endif

#include "ops/chain/avx512_lanes.h"
#include "ops/chain/float_loops.h"

namespace patchbay::ops {

const RowLoops& Avx512RowLoops() {
  static constexpr RowLoops kLoops = LoopsOf<Avx512Lanes>("avx512");
  return kLoops;
}

}  // namespace patchbay::ops

#ifdef __clang__
#pragma clang attribute pop
#endif
