// The program of one patch between its gather and its slot: typed steps with their draws, in the
// order in which they are applied, over (z, y, x) and channels; images have a depth of 1. A part of
// chain.
#pragma once

#include <variant>

#include "ops/chain/step_lists.h"
#include "ops/steps/op_program.h"

namespace patchbay::ops {

template <typename List>
struct WithNeighbourhoods;
template <typename... Steps>
struct WithNeighbourhoods<StepList<Steps...>> {
  using Any = std::variant<BlurStep, CoarseStep, Steps...>;
};

/// A reduction or a neighbourhood: the patch is kept in scratch.
struct WholeStep {
  WithNeighbourhoods<Reductions>::Any step;
  int slot = 0;  ///< its index among the steps that patches of the chain may have
};

/// Point-wise steps that are neighbours are fused, a row of the patch running through all.
using PatchStep = std::variant<AnyPointStep, WholeStep>;

}  // namespace patchbay::ops
