// stain_normalize: macenko, the linear map of optical densities.
#pragma once

#include "ops/colour/optical_density.h"
#include "runtime/model/ops/stain_fit.h"

namespace patchbay::ops {

/// From the amounts of an image's stains to those of the reference: each scaled by the quotient of
/// the largest, then shown in the reference's colours. What is no stain is left out.
OdStep StainNormalizeStep(const plan::MacenkoFit& image, const plan::MacenkoFit& reference);

}  // namespace patchbay::ops
