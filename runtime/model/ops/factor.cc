#include "runtime/model/ops/factor.h"

#include <utility>

namespace patchbay::plan {
namespace {

config::Key KeysOf(std::string name, std::string help, std::string factor_help) {
  return {
      .name = std::move(name),
      .type = config::KeyType::kMap,
      .help = std::move(help),
      .members = {ProbabilityKey(),
                  RangeKey({.name = "factor", .min = 0, .max = 10, .help = std::move(factor_help)},
                           FactorOptions{}.factor)}};
}

}  // namespace

config::Key FactorOptions::BrightnessKeys() {
  return KeysOf("brightness", "multiplies the values; volumes only",
                "factor; half of the draws are below 1 if the range contains 1");
}

config::Key FactorOptions::ContrastKeys() {
  return KeysOf(
      "contrast",
      "scales the values about the patch's mean, clamped to the patch's own range; volumes only",
      "factor about the mean; half of the draws are below 1 if the range contains 1");
}

FactorOptions FactorOptions::FromJson(const Json& options) {
  return {options["p"].get<double>(), RangeOf(options, "factor")};
}

}  // namespace patchbay::plan
