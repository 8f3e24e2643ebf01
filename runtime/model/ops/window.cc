#include "runtime/model/ops/window.h"

#include <algorithm>

#include "runtime/core/strings.h"

namespace patchbay::plan {
namespace {

Status CheckTable(const Json& options) {
  const auto window = WindowOptions::FromJson(options);
  if (window.low < window.high) return absl::OkStatus();
  return absl::InvalidArgumentError(StrCat("range: [", window.low, ", ", window.high,
                                           "]: the low bound is not below the high one"));
}

}  // namespace

config::Key WindowOptions::Keys() {
  return {
      .name = "window",
      .type = config::KeyType::kMap,
      .help = "maps a range of Hounsfield units to 0..1 and clamps what lies outside; volumes only",
      .members = {{.name = "range",
                   .type = config::KeyType::kFloatList,
                   .required = true,
                   .unit = "HU",
                   .min = -kMaxWindowBound,
                   .max = kMaxWindowBound,
                   .min_items = 2,
                   .max_items = 2,
                   .help = "the values that become 0 and 1"}},
      .check = CheckTable};
}

WindowOptions WindowOptions::FromJson(const Json& options) {
  return {options["range"][0].get<double>(), options["range"][1].get<double>()};
}

double Windowed(double hu, const std::optional<WindowOptions>& window) {
  if (!window) return hu;
  return std::clamp((hu - window->low) / (window->high - window->low), 0.0, 1.0);
}

std::optional<WindowOptions> FindWindow(const Json& preprocess, const Json& augment) {
  for (const Json* list : {&preprocess, &augment}) {
    for (const Json& step : *list) {
      if (step.contains("window")) return WindowOptions::FromJson(step["window"]);
    }
  }
  return std::nullopt;
}

}  // namespace patchbay::plan
