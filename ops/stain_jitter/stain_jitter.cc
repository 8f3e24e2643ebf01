#include "ops/stain_jitter/stain_jitter.h"

namespace patchbay::ops {

std::vector<plan::Option<StainJitterOptions>> StainJitterOptions::Table() {
  using O = StainJitterOptions;
  return {ProbabilityOption<O>(), AlphaOption<O>(), BetaOption<O>()};
}

plan::OpRow DescribeStainJitter() {
  return {.number = StainJitterOptions::kNumber,
          .keys = plan::KeysOf<StainJitterOptions>(
              "stain_jitter",
              "scales and shifts haematoxylin and eosin, in the basis of the reference stains"),
          .needs = {.rgb = true, .random = true},
          .axes = plan::OpAxes::kPlane,
          .images = {kIntensities.begin(), kIntensities.end()},
          .example = {{"p", 1}}};
}

OdStep DrawStainJitter(const StainJitterOptions& options, const plan::MacenkoFit& basis,
                       const DrawKey& key) {
  const PhiloxBlock factors = Draw(key, 0), shifts = Draw(key, 1);
  OdStep step;
  if (!(UniformFloat(factors.word[0]) < options.p)) return step;
  const std::array<Vector3, 2> unmix = LeastSquares(basis.stains);
  for (std::size_t s = 0; s < 2; ++s) {
    AddStain(step.matrix, basis.stains[s], unmix[s], Symmetric(options.alpha, factors.word[1 + s]));
    AddOffset(step.offset, basis.stains[s], Symmetric(options.beta, shifts.word[s]));
  }
  return step;
}

}  // namespace patchbay::ops
