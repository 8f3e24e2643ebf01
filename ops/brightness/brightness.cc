#include "ops/brightness/brightness.h"

namespace patchbay::ops {

std::vector<plan::Option<BrightnessOptions>> BrightnessOptions::Table() {
  using O = BrightnessOptions;
  return {
      ProbabilityOption<O>(),
      plan::OptionOf(&O::factor,
                     {.name = "factor",
                      .min = 0,
                      .max = 10,
                      .help = "factor; half of the draws are below 1 if the range contains 1"})};
}

plan::OpRow DescribeBrightness() {
  return {
      .number = BrightnessOptions::kNumber,
      .keys = plan::KeysOf<BrightnessOptions>("brightness", "multiplies the values; volumes only"),
      .needs = {.random = true, .once = true},
      .axes = plan::OpAxes::kVolume,
      .example = {{"p", 1}}};
}

}  // namespace patchbay::ops
