// cast: rounds values to a type. Templates; include after the target pragma of a variant.
#pragma once

#include "ops/lanes/cast_bits.h"
#include "ops/lanes/lane_code.h"
#include "ops/steps/step_forms.h"

namespace patchbay::ops {

struct CastStep {
  static constexpr StepForm kForm = StepForm::kOneByOne;
  static constexpr bool kByValue = true;
  CastTo to = CastTo::kFloat32;
};
template <typename V>
PB_LANE_CODE V Applied(const CastStep& step, V x) {
  return {CastValue(CastBits(x.v, step.to), step.to)};
}
PB_LANE_CODE double Exactly(const CastStep& step, double x) {
  return CastValue(CastBits(static_cast<float>(x), step.to), step.to);
}

}  // namespace patchbay::ops
