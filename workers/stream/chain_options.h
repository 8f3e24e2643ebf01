// What a plan says about its patches, in the words of the transform chain.
#pragma once

#include "ops/chain/chain.h"
#include "runtime/plan/plan.h"

namespace patchbay::workers {

ops::ChainOptions ChainOptionsOf(const plan::Plan& plan);

}  // namespace patchbay::workers
