#include "runtime/plan/ops/flip.h"

namespace patchbay::plan {

config::Key FlipOptions::Keys() {
  const FlipOptions defaults;
  return {.name = "flip",
          .type = config::KeyType::kMap,
          .help = "mirrors the patch",
          .members = {{.name = "horizontal",
                       .type = config::KeyType::kFloat,
                       .fallback = defaults.horizontal,
                       .min = 0,
                       .max = 1,
                       .help = "probability of mirroring left-right"},
                      {.name = "vertical",
                       .type = config::KeyType::kFloat,
                       .fallback = defaults.vertical,
                       .min = 0,
                       .max = 1,
                       .help = "probability of mirroring top-bottom"}}};
}

FlipOptions FlipOptions::FromJson(const Json& options) {
  return {options["horizontal"].get<double>(), options["vertical"].get<double>()};
}

}  // namespace patchbay::plan
