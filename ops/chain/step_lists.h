// The point-wise steps and the reductions of chains: the lists of their types, with the header of
// each that has its struct and its formula. There are no other such lists: loops, kernels, tables
// and uploads are made from them. Templates; include after the target pragma of a variant. Kernels
// include it as C++17. A part of chain.
#pragma once

#include <type_traits>

#include "ops/cast/cast_math.h"
#include "ops/chain/any_step.h"
#include "ops/color_jitter/color_jitter_math.h"
#include "ops/colour/od_map_math.h"
#include "ops/contrast/contrast_math.h"
#include "ops/gamma/gamma_math.h"
#include "ops/gaussian_noise/gaussian_noise_math.h"
#include "ops/icc_to_srgb/icc_to_srgb_math.h"
#include "ops/intensity/channel_steps.h"  // wide: a list of types, each from its header
#include "ops/intensity/tone_math.h"
#include "ops/normalize/normalize_math.h"
#include "ops/posterize/posterize_math.h"
#include "ops/stain_normalize/reinhard_math.h"
#include "ops/zscore/zscore_math.h"

namespace patchbay::ops {

using PointSteps =
    StepList<IccStep, LabMap, OdMap, JitterStep, WindowStep, ClippedLine, ValueLine, LineBesideZero,
             PatchNoise, LineWithin, PowerCurve, ScaleStep, CastStep, NormalizeStep, PosterizeStep,
             ExactStep, ChannelSteps<ValueLine>, ChannelSteps<LineBesideZero>,
             ChannelSteps<WindowStep>, ChannelSteps<LineWithin>>;
using Reductions = StepList<MeanJitterStep, ContrastStep, GammaStep>;

template <typename Step>
AnyPointStep PointStepOf(const Step& step) {
  return AnyStepOf<AnyPointStep, PointSteps>(step);
}
template <typename Call>
PB_LANE_CODE void VisitStep(const AnyPointStep& step, const Call& call) {
  VisitStep(PointSteps(), step, call);
}

template <typename Step, typename = void>
struct FormOf {
  static constexpr StepForm kForm = StepForm::kValue;
};
template <typename Step>
struct FormOf<Step, std::void_t<decltype(Step::kForm)>> {
  static constexpr StepForm kForm = Step::kForm;
};
/// Whether the step has a form in double that maps single values: uint8 can have a table of it.
template <typename Step, typename = void>
struct IsByValue : std::false_type {};
template <typename Step>
struct IsByValue<Step, std::void_t<decltype(Step::kByValue)>> : std::true_type {};
/// Whether the step refers to values stored outside it, and to values that a GPU keeps.
template <typename Step, typename = void>
struct HasValues : std::false_type {};
template <typename Step>
struct HasValues<Step, std::void_t<decltype(Step::values)>> : std::true_type {};
template <typename Step, typename = void>
struct HasKept : std::false_type {};
template <typename Step>
struct HasKept<Step, std::void_t<decltype(Step::kept)>> : std::true_type {};
template <typename Step, typename = void>
struct HasChannels : std::false_type {};
template <typename Step>
struct HasChannels<Step, std::void_t<decltype(&Step::OfChannel)>> : std::true_type {};

/// The step as channel `c` has it.
template <typename Step>
PB_LANE_CODE auto OfChannel(const Step& step, int c) {
  if constexpr (HasChannels<Step>::value) {
    return step.OfChannel(c);
  } else {
    return step;
  }
}

/// Applies a step of any type with a form in double.
PB_LANE_CODE double ExactOf(const AnyPointStep& step, double x) {
  VisitStep(step, [&x](const auto& one) {
    if constexpr (IsByValue<std::decay_t<decltype(one)>>::value) x = Exactly(one, x);
  });
  return x;
}

}  // namespace patchbay::ops
