#include "runtime/plan/ops/brightness.h"

namespace patchbay::plan {

config::Key BrightnessOptions::Keys() {
  const BrightnessOptions defaults;
  return {.name = "brightness",
          .type = config::KeyType::kMap,
          .help = "multiplies the values; volumes",
          .members = {
              ProbabilityKey(),
              RangeKey({.name = "factor",
                        .min = 0,
                        .max = 10,
                        .help = "factor; half of the draws below 1 where the range has 1 inside"},
                       defaults.factor)}};
}

BrightnessOptions BrightnessOptions::FromJson(const Json& options) {
  return {options["p"].get<double>(), RangeOf(options, "factor")};
}

}  // namespace patchbay::plan
