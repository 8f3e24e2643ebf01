#include "runtime/model/ops/volume_chain.h"

#include <algorithm>

#include "runtime/core/strings.h"
#include "runtime/model/ops/affine.h"
#include "runtime/model/ops/elastic.h"
#include "runtime/model/ops/flip.h"
#include "runtime/model/ops/normalize.h"

namespace patchbay::plan {
namespace {

bool IsNormaliser(OpNumber op) {
  return op == OpNumber::kNormalize || op == OpNumber::kCtNormalize || op == OpNumber::kZscore;
}

/// On a patch with three axes these are a volume's.
bool WorksInDepth(OpNumber op) {
  return op == OpNumber::kAffine || op == OpNumber::kElastic || op == OpNumber::kGaussianBlur ||
         op == OpNumber::kGaussianNoise;
}

Status CheckAffine(const OpStep& step) {
  const auto affine = AffineOptions::FromJson(step.options);
  if (!affine.shear.Always(0)) return WrongOp(step.key, "shear: for 2-D images only");
  if (affine.translate_y == 0 && affine.translate_x == 0) return absl::OkStatus();
  return WrongOp(step.key,
                 "translate: for 2-D images only; sampling.positions: random moves patches");
}

Status CheckElastic(const OpStep& step, const Extent& patch) {
  const auto elastic = ElasticOptions::FromJson(step.options);
  const Status folds = CheckFolding(elastic, {patch.z, patch.y, patch.x});
  return folds.ok() ? folds : WrongOp(step.key, MessageOf(folds));
}

Status CheckStep(const OpStep& step, const Extent& patch) {
  const OpNeeds needs = NeedsOf(step.op);
  if (needs.rgb || step.op == OpNumber::kCrop || step.op == OpNumber::kRotate90) {
    return WrongOp(step.key, "for 2-D images; another step makes this chain one for volumes");
  }
  if (needs.between && BorderOf(step.options) != Border::kReflect101) {
    return WrongOp(step.key,
                   "border: for 2-D images only; a volume is read as far as it is moved, "
                   "and patch.fill lies outside");
  }
  if (step.op == OpNumber::kAffine) return CheckAffine(step);
  if (step.op == OpNumber::kElastic) return CheckElastic(step, patch);
  if (step.op != OpNumber::kNormalize) return absl::OkStatus();
  const Status fits = CheckChannels(NormalizeOptions::FromJson(step.options), 1);
  return fits.ok() ? fits : WrongOp(step.key, MessageOf(fits));
}

}  // namespace

bool IsVolumeStep(const OpStep& step) {
  if (step.op == OpNumber::kFlip) return FlipOptions::FromJson(step.options).by_axes;
  if (step.op == OpNumber::kElastic) {
    return ElasticOptions::FromJson(step.options).amplitude_mm > 0;
  }
  return NeedsOf(step.op).volume;
}

bool IsVolumeChain(const std::vector<OpStep>& steps, const Extent& patch, PatchKind kind) {
  if (kind == PatchKind::kResampled) return true;
  const bool has_depth = kind == PatchKind::kVolume || patch.z > 1;
  return std::any_of(steps.begin(), steps.end(), [has_depth](const OpStep& step) {
    return IsVolumeStep(step) || (has_depth && WorksInDepth(step.op));
  });
}

Status CheckVolumeChain(const std::vector<OpStep>& steps, const Extent& patch) {
  const OpStep* normaliser = nullptr;
  for (const OpStep& step : steps) {
    PB_RETURN_IF_ERROR(CheckStep(step, patch));
    if (!IsNormaliser(step.op)) continue;
    if (normaliser != nullptr) {
      return WrongOp(step.key, StrCat("excludes ", normaliser->key,
                                      ": at most one of ct_normalize, zscore and normalize"));
    }
    normaliser = &step;
  }
  return absl::OkStatus();
}

FactsNeeded FactsNeededBy(const std::vector<OpStep>& steps, const Extent& patch, PatchKind kind) {
  FactsNeeded needed;
  if (!IsVolumeChain(steps, patch, kind)) return needed;
  needed.spacing = kind == PatchKind::kResampled;
  for (const OpStep& step : steps) {
    needed.body = needed.body || step.op == OpNumber::kZscore;
    needed.spacing = needed.spacing || step.op == OpNumber::kAffine ||
                     (step.op == OpNumber::kElastic && IsVolumeStep(step));
  }
  return needed;
}

}  // namespace patchbay::plan
