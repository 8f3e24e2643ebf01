// The read stage: which pixels of which level one of a patch's images is made of.
#pragma once

#include <cstddef>

#include "ops/chain/chain.h"
#include "ops/geometry/area_average.h"
#include "runtime/core/box.h"
#include "runtime/model/plan/plan.h"

namespace patchbay::workers {

/// The region to read, and how its pixels become the chain's source.
struct ViewWindow {
  int level = 0;
  Box box;  ///< the region to read, in pixels of the level; may reach past it
  ops::AxisMap y, x;

  /// Whether the pixels that are read are the chain's source as they are.
  bool IsPlain() const { return y.IsIdentity() && x.IsIdentity(); }
};

/// The window of view `view` of a patch that is no padding. The plan is the one the spec was
/// derived from, the chain its own.
ViewWindow WindowOf(const plan::Plan& plan, const ops::Chain& chain, const plan::PatchSpec& spec,
                    std::size_t view);

}  // namespace patchbay::workers
