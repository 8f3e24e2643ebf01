#include "ops/stain_normalize/stain_normalize.h"

namespace patchbay::ops {

OdStep StainNormalizeStep(const plan::MacenkoFit& image, const plan::MacenkoFit& reference) {
  const std::array<Vector3, 2> unmix = LeastSquares(image.stains);
  OdStep step;
  step.matrix = {};
  for (std::size_t s = 0; s < 2; ++s) {
    AddStain(step.matrix, reference.stains[s], unmix[s],
             reference.max_concentrations[s] / image.max_concentrations[s]);
  }
  return step;
}

}  // namespace patchbay::ops
