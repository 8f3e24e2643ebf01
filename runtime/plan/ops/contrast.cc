#include "runtime/plan/ops/contrast.h"

namespace patchbay::plan {

config::Key ContrastOptions::Keys() {
  const ContrastOptions defaults;
  return {
      .name = "contrast",
      .type = config::KeyType::kMap,
      .help =
          "moves the values away from the patch's mean or towards it, within its least and largest "
          "value; volumes",
      .members = {
          ProbabilityKey(),
          RangeKey(
              {.name = "factor",
               .min = 0,
               .max = 10,
               .help =
                   "factor about the mean; half of the draws below 1 where the range has 1 inside"},
              defaults.factor)}};
}

ContrastOptions ContrastOptions::FromJson(const Json& options) {
  return {options["p"].get<double>(), RangeOf(options, "factor")};
}

}  // namespace patchbay::plan
