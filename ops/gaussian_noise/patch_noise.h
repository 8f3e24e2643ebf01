// The draws of gaussian_noise for one patch, as plain values that kernels take too.
#pragma once

#include <cstdint>

#include "ops/steps/step_forms.h"
#include "runtime/core/random.h"

namespace patchbay::ops {

inline constexpr int kNoiseLanes = 16, kNormalsPerBlock = 8;
inline constexpr int kNoiseGroup = kNoiseLanes * kNormalsPerBlock;

/// The key and counter of Draw, without the block's index.
struct NoiseKey {
  std::uint32_t counter[3] = {}, key[2] = {};
};

PB_HOST_DEVICE inline NoiseKey NoiseKeyOf(const DrawKey& key) {
  return {{(key.op_occurrence << 20) | (static_cast<std::uint32_t>(key.stream) << 16) |
               (key.epoch & 0xFFFFu),
           static_cast<std::uint32_t>(key.ordinal), static_cast<std::uint32_t>(key.ordinal >> 32)},
          {static_cast<std::uint32_t>(key.seed), static_cast<std::uint32_t>(key.seed >> 32)}};
}

struct PatchNoise {
  static constexpr StepForm kForm = StepForm::kPlaced;
  float std = 0;  ///< in units of the values; 0: none
  NoiseKey key;
};

}  // namespace patchbay::ops
