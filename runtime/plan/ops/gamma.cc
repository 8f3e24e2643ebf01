#include "runtime/plan/ops/gamma.h"

namespace patchbay::plan {

config::Key GammaOptions::Keys() {
  const GammaOptions defaults;
  using config::KeyType;
  return {.name = "gamma",
          .type = KeyType::kMap,
          .help =
              "a power of the values between the patch's least and largest one; volumes; may be "
              "named more than once",
          .members = {ProbabilityKey(),
                      RangeKey({.name = "gamma",
                                .min = 0.05,
                                .max = 20,
                                .help = "exponent; half of the draws below 1 where the range has 1 "
                                        "inside"},
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
