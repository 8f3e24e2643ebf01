// What a plan says about its patches, in the words of the transform chain.
#pragma once

#include "ops/chain/chain.h"
#include "runtime/model/plan/plan.h"

namespace patchbay::workers {

ops::ChainOptions ChainOptionsOf(const plan::Plan& plan);

/// What the chain is told of an image's colours; `icc` is the lookup that the plan names, or null.
/// A view of both.
ops::ImageColours ColoursOf(const plan::PlannedImage& image, const ops::IccLookup* icc);

}  // namespace patchbay::workers
