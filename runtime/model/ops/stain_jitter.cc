#include "runtime/model/ops/stain_jitter.h"

namespace patchbay::plan {

config::Key AlphaKey(double fallback) {
  return {.name = "alpha",
          .type = config::KeyType::kFloat,
          .fallback = fallback,
          .min = 0,
          .max = 1,
          .help = "each stain's amount is multiplied by 1 - alpha to 1 + alpha"};
}

config::Key BetaKey(double fallback) {
  return {.name = "beta",
          .type = config::KeyType::kFloat,
          .fallback = fallback,
          .unit = "natural OD",
          .min = 0,
          .max = 2,
          .help = "and shifted by -beta to beta"};
}

config::Key StainJitterOptions::Keys() {
  const StainJitterOptions defaults;
  return {.name = "stain_jitter",
          .type = config::KeyType::kMap,
          .help = "scales and shifts haematoxylin and eosin, in the basis of the reference stains",
          .members = {ProbabilityKey(), AlphaKey(defaults.alpha), BetaKey(defaults.beta)}};
}

StainJitterOptions StainJitterOptions::FromJson(const Json& options) {
  return {options["p"].get<double>(), options["alpha"].get<double>(),
          options["beta"].get<double>()};
}

}  // namespace patchbay::plan
