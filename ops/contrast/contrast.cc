// contrast: moves the values of a channel of a patch away from their mean or towards it, within
// their least and largest value.
#include <algorithm>

#include "ops/contrast/contrast_math.h"
#include "ops/draws/factor.h"

namespace patchbay::ops {
namespace {

Status Compile(const plan::OpStep& step, ProgramBuilder& program) {
  return CompileFactor(step, true, program, [](const ChannelFactors& factors, StepSink& sink) {
    ContrastStep made;
    std::copy(factors.of.begin(), factors.of.end(), made.factor);
    sink.Add(made);
  });
}

}  // namespace

plan::OpRow DescribeContrast() {
  return {.number = plan::OpNumber{19},
          .keys = plan::KeysOf<FactorOptions>("contrast",
                                              "scales the values about the patch's mean, clamped "
                                              "to the patch's own range; volumes only"),
          .compile = Compile,
          .needs = {.statistics = true, .random = true, .once = true},
          .axes = plan::OpAxes::kVolume,
          .example = {{"p", 1}}};
}

}  // namespace patchbay::ops
