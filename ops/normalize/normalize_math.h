// normalize: the formula of one value, and its steps. Templates; include after the target pragma of
// a variant.
#pragma once

#include "ops/intensity/tone_math.h"
#include "ops/steps/step_forms.h"

namespace patchbay::ops {

/// The parameters of one channel.
struct NormalizeChannel {
  double scale = 255.0, mean = 0.0, std = 1.0;
};

/// (x / scale - mean) / std. In double the error is far below that of rounding to float, so the
/// rounded result is the same on every machine and device.
template <typename Value>
PB_HOST_DEVICE inline Value NormalizeValue(Value x, Value scale, Value mean, Value std) {
  return (x / scale - mean) / std;
}

/// In double, of one channel.
struct NormalizeStep {
  static constexpr StepForm kForm = StepForm::kInDouble;
  static constexpr bool kByValue = true;
  NormalizeChannel channel;
};
PB_LANE_CODE double Exactly(const NormalizeStep& step, double x) {
  return NormalizeValue(x, step.channel.scale, step.channel.mean, step.channel.std);
}

/// In float: value * slope + offset, a line for each channel.
struct ScaleStep {
  StepValues<ValueLine> values;
  PB_LANE_CODE ValueLine OfChannel(int c) const { return values.at[c]; }
};

}  // namespace patchbay::ops
