#include "runtime/model/ops/gamma.h"

namespace patchbay::plan {

config::Key GammaOptions::Keys() {
  const GammaOptions defaults;
  using config::KeyType;
  return {.name = "gamma",
          .type = KeyType::kMap,
          .help =
              "raises the values, scaled to the patch's range, to a power; volumes only; may be "
              "used more than once",
          .members = {
              ProbabilityKey(),
              RangeKey({.name = "gamma",
                        .min = 0.05,
                        .max = 20,
                        .help = "exponent; half of the draws are below 1 if the range contains 1"},
                       defaults.gamma),
              {.name = "retain_stats",
               .type = KeyType::kBool,
               .fallback = defaults.retain_stats,
               .help = "keep the patch's mean and standard deviation"},
              {.name = "invert",
               .type = KeyType::kBool,
               .fallback = defaults.invert,
               .help = "applied to the negated values, then negated back"}}};
}

GammaOptions GammaOptions::FromJson(const Json& options) {
  return {options["p"].get<double>(), RangeOf(options, "gamma"),
          options["retain_stats"].get<bool>(), options["invert"].get<bool>()};
}

}  // namespace patchbay::plan
