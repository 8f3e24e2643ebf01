#include "runtime/model/ops/gaussian_noise.h"

namespace patchbay::plan {

config::Key GaussianNoiseOptions::Keys() {
  const GaussianNoiseOptions defaults;
  return {.name = "gaussian_noise",
          .type = config::KeyType::kMap,
          .help = "adds normal noise, drawn for every value",
          .members = {ProbabilityKey(),
                      RangeKey({.name = "std",
                                .unit = "full scale",
                                .min = 0,
                                .max = 1,
                                .help = "standard deviation before normalize; 1 is white. Of "
                                        "volumes in units of the normalised values"},
                               defaults.std)}};
}

GaussianNoiseOptions GaussianNoiseOptions::FromJson(const Json& options) {
  return {options["p"].get<double>(), RangeOf(options, "std")};
}

}  // namespace patchbay::plan
