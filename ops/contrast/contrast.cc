#include "ops/contrast/contrast.h"

namespace patchbay::ops {

std::vector<plan::Option<ContrastOptions>> ContrastOptions::Table() {
  using O = ContrastOptions;
  return {
      ProbabilityOption<O>(),
      plan::OptionOf(&O::factor, {.name = "factor",
                                  .min = 0,
                                  .max = 10,
                                  .help = "factor about the mean; half of the draws are below 1 "
                                          "if the range contains 1"})};
}

plan::OpRow DescribeContrast() {
  return {.number = ContrastOptions::kNumber,
          .keys = plan::KeysOf<ContrastOptions>("contrast",
                                                "scales the values about the patch's mean, clamped "
                                                "to the patch's own range; volumes only"),
          .needs = {.statistics = true, .random = true, .once = true},
          .axes = plan::OpAxes::kVolume,
          .example = {{"p", 1}}};
}

}  // namespace patchbay::ops
