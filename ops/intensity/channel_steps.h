// Steps that differ from channel to channel: a few channels a step. Templates; include after the
// target pragma of a variant. Kernels include it as C++17.
#pragma once

#include <cstddef>

#include "ops/lanes/lane_code.h"

namespace patchbay::ops {

/// The step of one channel, or none: values stay as they are.
template <typename Step>
struct MaybeStep {
  Step step;
  bool applies = false;
};

/// A step of their own for channels `first` to `first` + `count` - 1.
template <typename Step>
struct ChannelSteps {
  static constexpr int kMost = static_cast<int>(96 / sizeof(Step));  ///< larger: a larger step
  int first = 0, count = 0;
  Step step[kMost] = {};

  PB_LANE_CODE MaybeStep<Step> OfChannel(int c) const {
    const int at = c - first;
    const bool applies = at >= 0 && at < count;
    return {step[applies ? at : 0], applies};
  }
};

template <typename V, typename Step>
PB_LANE_CODE V Applied(const MaybeStep<Step>& one, V x) {
  return one.applies ? Applied(one.step, x) : x;
}

/// Adds to `sink` the step that `step_of(c)` gives for each channel.
template <typename Sink, typename StepOf>
void AddToChannels(int channels, Sink& sink, const StepOf& step_of) {
  using Steps = ChannelSteps<decltype(step_of(0))>;
  if (channels == 1) return sink.Add(step_of(0));
  for (int first = 0; first < channels; first += Steps::kMost) {
    Steps some;
    some.first = first;
    for (; some.count < Steps::kMost && first + some.count < channels; ++some.count) {
      some.step[some.count] = step_of(first + some.count);
    }
    sink.Add(some);
  }
}

}  // namespace patchbay::ops
