#include "ops/chain/patch_steps.h"

namespace patchbay::ops {

std::vector<PatchStep> StepsOf(const ColourProgram& program, const PatchColour& colour) {
  std::vector<PatchStep> steps;
  const auto add = [&steps](const PointwiseStep& step) { steps.emplace_back(step); };
  const auto add_whole = [&steps](const WholeStep& step) { steps.emplace_back(step); };
  if (colour.icc != nullptr) add(IccStep{colour.icc});
  if (colour.lab) add(*colour.lab);
  if (colour.od) add(*colour.od);
  if (colour.jitter) {
    const int before_mean = colour.StepsBeforeMean();
    const auto white = static_cast<float>(program.white());
    add(JitterStep{*colour.jitter, 0, before_mean, white});
    if (before_mean < kColorSteps) {
      add_whole(MeanJitterStep{{*colour.jitter, before_mean, kColorSteps, white}});
    }
  }
  if (colour.blur.radius != 0) add_whole(BlurStep{colour.blur, {false, true, true}});
  if (colour.noise.std > 0) add(colour.noise);
  if (!program.slopes().empty()) {
    add(ScaleStep{program.slopes().data(), program.offsets().data()});
  }
  for (const CastTo to : program.casts()) add(to);
  return steps;
}

std::vector<PatchStep> StepsOf(const VolumeProgram& program, const VolumeIntensity& drawn,
                               const Extent& patch) {
  std::vector<PatchStep> steps;
  const auto add = [&steps](const PointwiseStep& step) { steps.emplace_back(step); };
  const auto add_whole = [&steps](const WholeStep& step) { steps.emplace_back(step); };
  add(drawn.tone);
  if (drawn.noise.std > 0) add(drawn.noise);
  // Blur is linear: brightness may come before it.
  if (drawn.brightness != 1) add(FreeLine(drawn.brightness, 0));
  // An axis of one voxel has no neighbours to sum.
  if (drawn.blur.radius > 0 && patch.Pixels() > 1) {
    add_whole(BlurStep{drawn.blur, {patch.z > 1, patch.y > 1, patch.x > 1}});
  }
  if (drawn.contrast != 1) add_whole(ContrastStep{drawn.contrast});
  if (drawn.coarse != patch) add_whole(CoarseStep{drawn.coarse});
  for (const DrawnGamma& gamma : drawn.gammas) add_whole(gamma);
  for (const CastTo to : program.casts()) add(to);
  return steps;
}

}  // namespace patchbay::ops
