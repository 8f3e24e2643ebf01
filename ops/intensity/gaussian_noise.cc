#include "ops/intensity/gaussian_noise.h"

namespace patchbay::ops {

PatchNoise DrawNoise(const plan::GaussianNoiseOptions& options, const DrawKey& key, double white) {
  const PhiloxBlock block = Draw(key, 0);
  PatchNoise noise;
  if (!(UniformFloat(block.word[0]) < options.p)) return noise;
  const double u = UniformFloat(block.word[1]);
  noise.std =
      static_cast<float>((options.std.low + (options.std.high - options.std.low) * u) * white);
  DrawKey own = key;
  own.stream = DrawStream::kNoise;
  noise.key = NoiseKeyOf(own);
  return noise;
}

}  // namespace patchbay::ops
