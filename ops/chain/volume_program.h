// The chain of a volume: every op of a run's lists, as what one patch draws and what all patches
// share. Applied in this order: geometry, window, ct_normalize or zscore or normalize,
// gaussian_noise, gaussian_blur, brightness, contrast, low_resolution, gamma, cast.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "ops/cast/cast_math.h"
#include "ops/chain/volume_geometry.h"
#include "ops/gaussian_blur/gaussian_blur.h"
#include "ops/gaussian_noise/patch_noise.h"
#include "ops/intensity/tone.h"
#include "runtime/core/status.h"
#include "runtime/model/ops/ct_normalize.h"
#include "runtime/model/ops/factor.h"
#include "runtime/model/ops/gamma.h"
#include "runtime/model/ops/gaussian_blur.h"
#include "runtime/model/ops/gaussian_noise.h"
#include "runtime/model/ops/low_resolution.h"
#include "runtime/model/ops/op_list.h"
#include "runtime/model/ops/volume_facts.h"
#include "runtime/model/ops/window.h"

namespace patchbay::ops {

struct DrawnGamma {
  double exponent = 1;
  bool retain_stats = false, invert = false;
};

/// What the ops that change values come to for one patch.
struct VolumeIntensity {
  Tone tone;
  PatchNoise noise;
  PatchBlur blur;
  float brightness = 1, contrast = 1;  ///< 1: as it is
  Extent coarse;                       ///< of low_resolution; the patch's own: as it is
  std::vector<DrawnGamma> gammas;
};

/// Immutable.
class VolumeProgram {
 public:
  /// Of steps that passed plan::CheckVolumeChain. InvalidArgument names the key.
  static StatusOr<VolumeProgram> Make(const std::vector<plan::OpStep>& steps, const Extent& patch,
                                      plan::PatchKind kind = plan::PatchKind::kPlane);

  const VolumeMoves& moves() const { return moves_; }
  VolumeGeometry DrawGeometry(const DrawKey& key, const plan::VolumeFacts& facts) const {
    return moves_.Draw(key, facts);
  }
  VolumeIntensity DrawIntensity(const DrawKey& key, const plan::VolumeFacts& facts) const;

  /// Rounds the finished values, in order.
  const std::vector<CastTo>& casts() const { return casts_; }
  /// Whether Draw needs an image's own facts; otherwise any will do.
  bool needs_facts() const { return needs_facts_; }
  /// Whether a patch may need its neighbours or the whole of itself.
  bool may_need_planes() const { return blur_ || contrast_ || low_resolution_ || !gammas_.empty(); }
  /// Whether a gamma keeps mean and deviation.
  bool retains_stats() const;

 private:
  Status Add(const plan::OpStep& step);

  Extent patch_;
  VolumeMoves moves_;
  bool needs_facts_ = false, use_zscore_ = false;
  Tone tone_;
  std::optional<DrawnOp<plan::GaussianNoiseOptions>> noise_;
  std::optional<DrawnOp<plan::GaussianBlurOptions>> blur_;
  std::optional<DrawnOp<plan::FactorOptions>> brightness_;
  std::optional<DrawnOp<plan::FactorOptions>> contrast_;
  std::optional<DrawnOp<plan::LowResolutionOptions>> low_resolution_;
  std::vector<DrawnOp<plan::GammaOptions>> gammas_;
  std::vector<CastTo> casts_;
};

}  // namespace patchbay::ops
