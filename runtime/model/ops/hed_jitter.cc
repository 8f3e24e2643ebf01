#include "runtime/model/ops/hed_jitter.h"

#include "runtime/model/ops/stain_jitter.h"

namespace patchbay::plan {

config::Key HedJitterOptions::Keys() {
  const HedJitterOptions defaults;
  return {.name = "hed_jitter",
          .type = config::KeyType::kMap,
          .help = "scales and shifts haematoxylin, eosin and DAB in natural optical density",
          .members = {ProbabilityKey(),
                      AlphaKey(defaults.alpha),
                      BetaKey(defaults.beta),
                      {.name = "stains",
                       .type = config::KeyType::kChoice,
                       .fallback = "hed",
                       .choices = {"hed", "he"},
                       .help = "all three, or haematoxylin and eosin alone"}}};
}

HedJitterOptions HedJitterOptions::FromJson(const Json& options) {
  return {options["p"].get<double>(), options["alpha"].get<double>(), options["beta"].get<double>(),
          options["stains"] == "hed"};
}

}  // namespace patchbay::plan
