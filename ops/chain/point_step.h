// A point-wise step of any type of the list (point_steps.h), as a plain value that kernels take
// too. Kernels include it as C++17. A part of chain.
#pragma once

#include <cstddef>
#include <cstdint>

#include "ops/lanes/lane_code.h"
#include "ops/steps/step_forms.h"

namespace patchbay::ops {

inline constexpr std::size_t kPointStepBytes = 112;  ///< of the largest type

struct PointStep {
  std::int32_t number = -1;  ///< of its type in the list
  alignas(8) unsigned char bytes[kPointStepBytes];
};

/// Steps that have a form in double, `count / channels` for each channel, carried in double from
/// one to the next and rounded once to float: for uint8 this gives the table of a chain.
struct ExactStep {
  StepValues<PointStep> values;
  int each = 0;
};

/// The steps of channel `c`.
PB_LANE_CODE StepValues<PointStep> StepsOf(const ExactStep& step, int c) {
  return {step.values.at + static_cast<std::ptrdiff_t>(c) * step.each, step.each};
}

}  // namespace patchbay::ops
