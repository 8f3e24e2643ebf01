// The point-wise steps of chains: the list of their types, with the header of each that has its
// struct and its formula. It is the only such list: loops, kernels, tables and uploads are made
// from it. Templates; include after the target pragma of a variant. Kernels include it as C++17. A
// part of chain.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include "ops/cast/cast_math.h"
#include "ops/chain/point_step.h"
#include "ops/color_jitter/color_jitter_math.h"
#include "ops/colour/od_map_math.h"
#include "ops/gamma/gamma_math.h"
#include "ops/gaussian_noise/gaussian_noise_math.h"
#include "ops/icc_to_srgb/icc_to_srgb_math.h"
#include "ops/intensity/tone_math.h"
#include "ops/normalize/normalize_math.h"
#include "ops/posterize/posterize_math.h"
#include "ops/stain_normalize/reinhard_math.h"

namespace patchbay::ops {

/// Types of steps, numbered.
template <typename... Steps>
struct StepList {
  static constexpr std::size_t Largest() {
    std::size_t most = 0;
    ((most = sizeof(Steps) > most ? sizeof(Steps) : most), ...);
    return most;
  }
  template <typename Step>
  static constexpr int NumberOf() {
    int number = 0, found = -1;
    ((found = std::is_same_v<Step, Steps> ? number : found, ++number), ...);
    return found;
  }
};

using PointSteps =
    StepList<IccStep, LabMap, OdMap, JitterStep, WindowStep, ClippedLine, ValueLine, PatchNoise,
             LineWithin, PowerCurve, ScaleStep, CastStep, NormalizeStep, PosterizeStep, ExactStep>;
static_assert(PointSteps::Largest() <= kPointStepBytes);

template <typename Step>
PointStep PointStepOf(const Step& step) {
  static_assert(PointSteps::NumberOf<Step>() >= 0 && std::is_trivially_copyable_v<Step>);
  PointStep any;
  any.number = PointSteps::NumberOf<Step>();
  std::memcpy(any.bytes, &step, sizeof step);
  return any;
}

/// Calls `call` with the step of `number` at `bytes`, in its type.
template <typename... Steps, typename Call>
PB_LANE_CODE void VisitStep(StepList<Steps...> /*list*/, std::int32_t number, const void* bytes,
                            const Call& call) {
  std::int32_t at = 0;
  ((at++ == number ? call(*static_cast<const Steps*>(bytes)) : void()), ...);
}
template <typename Call>
PB_LANE_CODE void VisitStep(const PointStep& step, const Call& call) {
  VisitStep(PointSteps(), step.number, step.bytes, call);
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
/// Whether the step refers to values stored outside it.
template <typename Step, typename = void>
struct HasValues : std::false_type {};
template <typename Step>
struct HasValues<Step, std::void_t<decltype(Step::values)>> : std::true_type {};
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
PB_LANE_CODE double ExactOf(const PointStep& step, double x) {
  VisitStep(step, [&x](const auto& one) {
    if constexpr (IsByValue<std::decay_t<decltype(one)>>::value) x = Exactly(one, x);
  });
  return x;
}

}  // namespace patchbay::ops
