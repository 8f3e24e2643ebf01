// gaussian_noise: adds normal noise to every value, of one standard deviation a patch. The normals
// are drawn by rows (gaussian_noise_math.h).
#pragma once

#include <vector>

#include "ops/draws/draws.h"
#include "ops/gaussian_noise/gaussian_noise_math.h"
#include "runtime/model/ops/op_options.h"
#include "runtime/model/ops/op_table.h"

namespace patchbay::ops {

struct GaussianNoiseOptions {
  double p = kDefaultProbability;
  DrawRange std = {0, 0.02};  ///< in units of the full scale: 1 is white

  static constexpr plan::OpNumber kNumber{14};
  static std::vector<plan::Option<GaussianNoiseOptions>> Table();
};

/// Word 0 of the key's first block decides whether noise is added, word 1 its deviation in units of
/// `white`. The normals come from the key's noise stream.
PatchNoise DrawNoise(const GaussianNoiseOptions& options, const DrawKey& key, double white);

}  // namespace patchbay::ops
