// The values of a chain: every op that changes them, as what one patch draws and what all patches
// share. A part of chain.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "ops/cast/cast_math.h"
#include "ops/chain/image_colours.h"
#include "ops/color_jitter/color_jitter.h"
#include "ops/colour/optical_density.h"
#include "ops/draws/draws.h"
#include "ops/gaussian_blur/gaussian_blur.h"
#include "ops/gaussian_noise/gaussian_noise.h"
#include "ops/hed_jitter/hed_jitter.h"
#include "ops/normalize/normalize_math.h"
#include "ops/stain_jitter/stain_jitter.h"
#include "ops/stain_normalize/lab_map.h"
#include "ops/stain_normalize/stain_normalize.h"
#include "runtime/core/dtype.h"
#include "runtime/core/status.h"
#include "runtime/model/ops/op_list.h"
#include "runtime/model/ops/stain_normalize.h"

namespace patchbay::ops {

/// What the colour ops of one patch come to, in the order in which they are applied.
struct PatchColour {
  const IccLookup* icc = nullptr;  ///< null: colours stay
  std::optional<LabMap> lab;
  std::optional<OdMap> od;
  std::optional<ColorJitter> jitter;
  PatchBlur blur;
  PatchNoise noise;

  /// Steps of the jitter before the first that needs the mean of the patch; kColorSteps: none does.
  int StepsBeforeMean() const;
};

/// Immutable once every step is added.
class ColourProgram {
 public:
  ColourProgram() = default;
  ColourProgram(int channels, DType source);

  /// A step that does not move pixels. InvalidArgument for an op that the source's type or channels
  /// cannot have; names its key.
  Status Add(const plan::OpStep& step);

  /// Whether an op needs more than one value of one pixel: otherwise tables do.
  bool needs_pixels() const { return needs_pixels_; }
  /// Whether a patch may need its neighbours or its mean: it is kept in between.
  bool needs_planes() const { return color_jitter_.has_value() || blur_.has_value(); }
  /// Whether Draw needs the fit of the patch's image, the one of the profile, and a reference that
  /// is there.
  bool needs_fit() const { return stain_.has_value(); }
  bool HasFit(const ImageColours& colours) const;
  /// Whether the ICC lookup of the patch's image is used, where it has one.
  bool converts_icc() const { return converts_icc_; }

  /// A pure function of the key and the image's colours. They may lack a fit unless needs_fit.
  PatchColour Draw(const DrawKey& key, const ImageColours& colours) const;

  /// normalize as value * slope + offset, rounded once: one entry a channel; empty: values stay.
  const std::vector<float>& slopes() const { return slopes_; }
  const std::vector<float>& offsets() const { return offsets_; }
  const std::vector<CastTo>& casts() const { return casts_; }
  double white() const { return white_; }

 private:
  Status AddStainNormalize(const plan::OpStep& step);
  Status AddNormalize(const plan::OpStep& step);
  bool MapsOd() const { return !macenko_references_.empty(); }
  OdStep DrawOd(const DrawKey& key, const ImageColours& colours) const;

  int channels_ = 3;
  DType source_ = DType::kUint8;
  double white_ = 255;
  bool needs_pixels_ = false;
  bool converts_icc_ = false;
  std::optional<plan::StainNormalizeOptions> stain_;
  std::vector<plan::MacenkoFit> macenko_references_;    ///< of stain_: macenko/cucim
  std::vector<plan::ReinhardFit> reinhard_references_;  ///< of stain_: reinhard
  std::vector<DrawnOp<plan::StainJitterOptions>> stain_jitters_;
  std::vector<DrawnOp<plan::HedJitterOptions>> hed_jitters_;
  std::optional<DrawnOp<plan::ColorJitterOptions>> color_jitter_;
  std::optional<DrawnOp<plan::GaussianBlurOptions>> blur_;
  std::optional<DrawnOp<plan::GaussianNoiseOptions>> noise_;
  std::vector<NormalizeChannel> scaled_;  ///< slope in `scale`, offset in `mean`: still in double
  std::vector<float> slopes_, offsets_;
  std::vector<CastTo> casts_;
};

}  // namespace patchbay::ops
