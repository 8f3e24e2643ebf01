// How the functions of a formula are declared: inlined into the loop or kernel that calls them, so
// that they are compiled for its processor.
#pragma once

#include "runtime/core/random.h"

#if defined(__CUDACC__)
#define PB_LANE_CODE __host__ __device__ __forceinline__
#else
#define PB_LANE_CODE inline __attribute__((always_inline))
#endif
