// Lists of ops for volumes: patches with three axes under one draw, one channel.
#pragma once

#include <vector>

#include "runtime/core/extent.h"
#include "runtime/core/status.h"
#include "runtime/model/ops/op_list.h"

namespace patchbay::plan {

/// Whether a step is made for volumes alone: window, zscore, flip with axes, ...
bool IsVolumeStep(const OpStep& step);

/// Whether the steps work on the patch as a volume: one of them does, or patches are brought to a
/// spacing. Otherwise each of its slices is an image, and ops that move whole pixels or look at
/// single values treat all slices alike. affine, elastic, blur and noise are a volume's wherever
/// patches have three axes, even with one slice, so that no other op changes what they do.
bool IsVolumeChain(const std::vector<OpStep>& steps, const Extent& patch,
                   PatchKind kind = PatchKind::kPlane);

/// InvalidArgument for what a volume chain cannot have: ops of slides, two normalisers, shear,
/// borders. Names the key.
Status CheckVolumeChain(const std::vector<OpStep>& steps, const Extent& patch);

/// Members of plan::VolumeFacts that the steps need.
struct FactsNeeded {
  bool spacing = false;  ///< affine turns in millimetres, elastic moves by them, patch.spacing
  bool body = false;     ///< zscore
};
FactsNeeded FactsNeededBy(const std::vector<OpStep>& steps, const Extent& patch,
                          PatchKind kind = PatchKind::kPlane);

}  // namespace patchbay::plan
