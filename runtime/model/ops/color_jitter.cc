#include "runtime/model/ops/color_jitter.h"

#include <utility>

namespace patchbay::plan {
namespace {

config::Key Factor(const char* name, const DrawRange& fallback, const char* help) {
  return RangeKey({.name = name, .min = 0, .max = 10, .help = help}, fallback);
}

}  // namespace

config::Key ColorJitterOptions::Keys() {
  const ColorJitterOptions defaults;
  return {
      .name = "color_jitter",
      .type = config::KeyType::kMap,
      .help = "brightness, contrast, saturation and hue, in an order drawn for each patch",
      .members = {
          ProbabilityKey(), Factor("brightness", defaults.brightness, "factor"),
          Factor("contrast", defaults.contrast,
                 "factor about the patch's mean grey; costs another pass unless [1, 1]"),
          Factor("saturation", defaults.saturation, "factor; 0 is grey"),
          RangeKey(
              {.name = "hue", .unit = "turns", .min = -0.5, .max = 0.5, .help = "shift of the hue"},
              defaults.hue)}};
}

ColorJitterOptions ColorJitterOptions::FromJson(const Json& options) {
  return {options["p"].get<double>(), RangeOf(options, "brightness"), RangeOf(options, "contrast"),
          RangeOf(options, "saturation"), RangeOf(options, "hue")};
}

}  // namespace patchbay::plan
