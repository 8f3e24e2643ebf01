// contrast: moves the values of a patch away from its mean or towards it, within its least and
// largest value.
#include "ops/contrast/contrast_math.h"
#include "ops/draws/factor.h"

namespace patchbay::ops {
namespace {

Status Compile(const plan::OpStep& step, ProgramBuilder& program) {
  return CompileFactor(step, true, program, [](float factor) { return ContrastStep{factor}; });
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
