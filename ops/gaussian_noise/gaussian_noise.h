// gaussian_noise: what a patch draws. The normals are drawn by rows (gaussian_noise_math.h).
#pragma once

#include "ops/gaussian_noise/patch_noise.h"
#include "runtime/model/ops/gaussian_noise.h"

namespace patchbay::ops {

/// Word 0 of the key's first block: whether; word 1: the deviation, of `white`. The normals come
/// from the key's noise stream.
PatchNoise DrawNoise(const plan::GaussianNoiseOptions& options, const DrawKey& key, double white);

}  // namespace patchbay::ops
