#include "ops/gaussian_noise/gaussian_noise.h"

#include "ops/draws/draws.h"

namespace patchbay::ops {

PatchNoise DrawNoise(const plan::GaussianNoiseOptions& options, const DrawKey& key, double white) {
  const PhiloxBlock block = Draw(key, 0);
  PatchNoise noise;
  if (!(UniformFloat(block.word[0]) < options.p)) return noise;
  noise.std = static_cast<float>(Drawn(options.std, block.word[1]) * white);
  DrawKey own = key;
  own.stream = DrawStream::kNoise;
  noise.key = NoiseKeyOf(own);
  return noise;
}

}  // namespace patchbay::ops
