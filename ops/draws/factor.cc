#include "ops/draws/factor.h"

namespace patchbay::ops {

std::vector<plan::Option<FactorOptions>> FactorOptions::Table() {
  using O = FactorOptions;
  return {
      ProbabilityOption<O>(),
      plan::OptionOf(&O::factor,
                     {.name = "factor",
                      .min = 0,
                      .max = 10,
                      .help = "factor; half of the draws are below 1 if the range contains 1"})};
}

}  // namespace patchbay::ops
