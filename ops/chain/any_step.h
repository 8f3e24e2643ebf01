// A step of any type of a list, as a plain value that kernels take too. Kernels include it as
// C++17. A part of chain.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include "ops/lanes/lane_code.h"
#include "ops/steps/step_forms.h"

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

template <std::size_t kBytes>
struct AnyStep {
  static constexpr std::size_t kMostBytes = kBytes;
  std::int32_t number = -1;  ///< index of its type in the list
  alignas(8) unsigned char bytes[kBytes] = {};
};
using AnyPointStep = AnyStep<112>;  ///< one step of PointSteps, see step_lists.h
using AnyReduction = AnyStep<264>;  ///< one step of Reductions

template <typename Any, typename List, typename Step>
Any AnyStepOf(const Step& step) {
  static_assert(List::template NumberOf<Step>() >= 0 && List::Largest() <= Any::kMostBytes);
  static_assert(std::is_trivially_copyable_v<Step>);
  Any any;
  any.number = List::template NumberOf<Step>();
  std::memcpy(any.bytes, &step, sizeof step);
  return any;
}

/// Calls `call` with the step in its type.
template <typename... Steps, typename Any, typename Call>
PB_LANE_CODE void VisitStep(StepList<Steps...> /*list*/, const Any& step, const Call& call) {
  std::int32_t at = 0;
  ((at++ == step.number ? call(*reinterpret_cast<const Steps*>(step.bytes)) : void()), ...);
}

/// Steps that have a form in double, `count / channels` for each channel, carried in double from
/// one to the next and rounded once to float: for uint8 this gives the table of a chain.
struct ExactStep {
  StepValues<AnyPointStep> values;
  int each = 0;
};

/// The steps of channel `c`.
PB_LANE_CODE StepValues<AnyPointStep> StepsOf(const ExactStep& step, int c) {
  return {step.values.at + static_cast<std::ptrdiff_t>(c) * step.each, step.each};
}

}  // namespace patchbay::ops
