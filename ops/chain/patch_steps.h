// The program of one patch between its gather and its slot: typed steps with what it drew, in the
// order in which they are applied, over (z, y, x) and channels; images have a depth of 1. A part of
// chain.
#pragma once

#include <variant>
#include <vector>

#include "ops/cast/cast_math.h"
#include "ops/chain/colour_program.h"
#include "ops/chain/volume_program.h"
#include "ops/color_jitter/color_steps.h"
#include "ops/colour/od_map.h"
#include "ops/gaussian_blur/gaussian_blur.h"
#include "ops/gaussian_noise/patch_noise.h"
#include "ops/icc_to_srgb/icc_lookup.h"
#include "ops/intensity/patch_stats.h"
#include "ops/intensity/tone.h"
#include "ops/stain_normalize/lab_map.h"
#include "runtime/core/extent.h"

namespace patchbay::ops {

struct IccStep {
  const IccLookup* lookup = nullptr;
};

/// Steps [first, last) of a colour jitter, none about the mean.
struct JitterStep {
  ColorJitter jitter;
  int first = 0, last = kColorSteps;
  float white = 255;
};

/// value * slope + offset, an entry a channel; both outlive the pass.
struct ScaleStep {
  const float *slope = nullptr, *offset = nullptr;
};

/// A colour jitter whose first step is about the mean grey of the slice.
struct MeanJitterStep {
  JitterStep steps;
};

struct BlurStep {
  PatchBlur blur;
  bool along[3] = {};  ///< which of z, y and x
};

/// About the mean of the patch, a channel at a time.
struct ContrastStep {
  float factor = 1;
};

/// Down to `size` by the nearest voxel, up again between voxels.
struct CoarseStep {
  Extent size;
};

/// One pixel at a time: neighbouring ones are fused, a row of the patch running through all.
using PointwiseStep = std::variant<IccStep, LabMap, OdMap, JitterStep, Tone, PatchNoise, LineWithin,
                                   ScaleStep, CastTo>;
/// Reductions and neighbourhoods: the patch is kept in scratch.
using WholeStep = std::variant<MeanJitterStep, BlurStep, ContrastStep, CoarseStep, DrawnGamma>;
using PatchStep = std::variant<PointwiseStep, WholeStep>;

/// The steps of an image's patch. `program` and the lookup of `colour` outlive them.
std::vector<PatchStep> StepsOf(const ColourProgram& program, const PatchColour& colour);
/// The steps of a volume's patch.
std::vector<PatchStep> StepsOf(const VolumeProgram& program, const VolumeIntensity& drawn,
                               const Extent& patch);

}  // namespace patchbay::ops
