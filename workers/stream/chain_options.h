// A plan's options for its patches, in the words of the transform chain.
#pragma once

#include "ops/chain/chain.h"
#include "runtime/model/plan/plan.h"

namespace patchbay::workers {

ops::ChainOptions ChainOptionsOf(const plan::Plan& plan);

/// The chain's input on an image's colours; `icc` is the lookup that the plan names, or null. A
/// view of both.
ops::ImageColours ColoursOf(const plan::PlannedImage& image, const ops::IccLookup* icc);

}  // namespace patchbay::workers
