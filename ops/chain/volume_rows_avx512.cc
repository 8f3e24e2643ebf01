// The loops of volumes sixteen values at a time. What is not a template is included before the
// pragma: it stays code for every machine.
#include <algorithm>
#include <cstring>
#include <type_traits>

#include <immintrin.h>

#include "ops/chain/scalar_lanes.h"
#include "ops/chain/volume_rows.h"

// GCC 12 takes what its own intrinsics leave undefined for a use of an uninitialised value.
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#pragma GCC diagnostic ignored "-Wuninitialized"
#ifdef __clang__
#pragma clang attribute push(__attribute__((target("avx512f,avx512dq,avx512bw,avx512vl"))), \
                             apply_to = function)
#else
#pragma GCC target("avx512f,avx512dq,avx512bw,avx512vl")
#endif

#include "ops/chain/avx512_voxels.h"
#include "ops/chain/volume_loops.h"

namespace patchbay::ops {

const VolumeLoops& Avx512VolumeLoops() {
  static constexpr VolumeLoops kLoops = VolumeLoopsOf<Avx512Lanes>();
  return kLoops;
}

}  // namespace patchbay::ops

#ifdef __clang__
#pragma clang attribute pop
#endif
