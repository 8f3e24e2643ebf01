// Instructions of this processor beyond x86-64-v3, which every supported one has.
#pragma once

namespace patchbay::ops {

/// Whether the processor runs code compiled for HWY_AVX3.
inline bool HasAvx512() {
  return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
         __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
}

/// The same, and also for byte shuffles across a whole register (AVX512-VBMI).
inline bool HasAvx512Shuffle() { return HasAvx512() && __builtin_cpu_supports("avx512vbmi"); }

}  // namespace patchbay::ops
