#include "ops/stain_jitter/stain_jitter.h"

namespace patchbay::ops {

OdStep DrawStainJitter(const plan::StainJitterOptions& options, const plan::MacenkoFit& basis,
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
