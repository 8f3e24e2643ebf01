// stain_normalize: reinhard as the formula takes it.
#pragma once

#include "ops/stain_normalize/lab_map.h"
#include "runtime/model/ops/stain_fit.h"

namespace patchbay::ops {

/// Maps the mean and deviation of an image's tissue in L*a*b* to those of the reference. Tissue is
/// defined as in the fit (above plan::kStainTissueOd in any channel); other pixels are unchanged.
/// `white` is the largest value of the source's type.
LabMap LabMapOf(const plan::ReinhardFit& image, const plan::ReinhardFit& reference, double white);

}  // namespace patchbay::ops
