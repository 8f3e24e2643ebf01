// The point-wise steps of a chain as plain values that kernels take too. The list of their types
// stands here alone: loops, kernels, tables and uploads are made from it, and from the formula of
// each in point_math.h. Kernels include it as C++17. A part of chain.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>
#include <utility>

#include "ops/cast/cast_math.h"
#include "ops/color_jitter/color_steps.h"
#include "ops/colour/od_map.h"
#include "ops/gamma/power_curve.h"
#include "ops/gaussian_noise/patch_noise.h"
#include "ops/intensity/patch_stats.h"
#include "ops/intensity/tone.h"
#include "ops/lanes/lane_code.h"
#include "ops/normalize/normalize_math.h"
#include "ops/stain_normalize/lab_map.h"

namespace patchbay::ops {

class IccLookup;
struct IccNode;
struct PointStep;

/// Values that a step refers to; they outlive the pass, on the device that runs it.
template <typename T>
struct StepValues {
  const T* at = nullptr;
  int count = 0;
};

struct IccStep {
  static constexpr bool kRgb = true;
  const IccLookup* lookup = nullptr;
  const IccNode* nodes = nullptr;  ///< those of the lookup; a kernel's lie in device memory
  int grid = 2;
};

/// Steps [first, last) of a colour jitter; `mean` is what contrast is about.
struct JitterStep {
  static constexpr bool kRgb = true;
  ColorJitter jitter;
  int first = 0, last = kColorSteps;
  float mean = 0, white = 255;
};

/// normalize in float: value * slope + offset, a line for each channel.
struct ScaleStep {
  StepValues<ValueLine> values;
  PB_LANE_CODE ValueLine OfChannel(int c) const { return values.at[c]; }
};

struct CastStep {
  static constexpr bool kByValue = true;
  CastTo to = CastTo::kFloat32;
};

/// normalize where values are carried in double: of one channel.
struct NormalizeStep {
  static constexpr bool kByValue = true;
  NormalizeChannel channel;
};

/// Steps that have a form in double, `count / channels` for each channel, carried in double from
/// one to the next and rounded once to float: for uint8 this gives the table of a chain.
struct ExactStep {
  StepValues<PointStep> values;
  int each = 0;
};

/// Types of steps, numbered.
template <typename... Steps>
struct StepList {
  static constexpr int kCount = static_cast<int>(sizeof...(Steps));
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
             LineWithin, PowerCurve, ScaleStep, CastStep, NormalizeStep, ExactStep>;

/// One step of any type of the list.
struct PointStep {
  std::int32_t number = -1;
  alignas(8) unsigned char bytes[PointSteps::Largest()];

  PointStep() = default;
  template <typename Step, typename = std::enable_if_t<(PointSteps::NumberOf<Step>() >= 0)>>
  PointStep(const Step& step)  // NOLINT(google-explicit-constructor)
      : number(PointSteps::NumberOf<Step>()) {
    static_assert(std::is_trivially_copyable_v<Step>);
    std::memcpy(bytes, &step, sizeof step);
  }
};

/// The steps of channel `c`.
PB_LANE_CODE StepValues<PointStep> StepsOf(const ExactStep& step, int c) {
  return {step.values.at + static_cast<std::ptrdiff_t>(c) * step.each, step.each};
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
struct IsRgb : std::false_type {};
template <typename Step>
struct IsRgb<Step, std::void_t<decltype(Step::kRgb)>> : std::true_type {};
/// It has a form in double, of a value alone: uint8 can have a table of it.
template <typename Step, typename = void>
struct IsByValue : std::false_type {};
template <typename Step>
struct IsByValue<Step, std::void_t<decltype(Step::kByValue)>> : std::true_type {};
/// It refers to values beside itself.
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

}  // namespace patchbay::ops
