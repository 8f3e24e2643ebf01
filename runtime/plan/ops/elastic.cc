#include "runtime/plan/ops/elastic.h"

#include <algorithm>

#include "runtime/base/strings.h"

namespace patchbay::plan {

config::Key ElasticOptions::Keys() {
  const ElasticOptions defaults;
  using config::KeyType;
  return {.name = "elastic",
          .type = KeyType::kMap,
          .help = "bends the patch by a cubic B-spline, bilinear; flat patches only",
          .members = {ProbabilityKey(),
                      {.name = "points",
                       .type = KeyType::kInt,
                       .fallback = defaults.points,
                       .min = kMinElasticPoints,
                       .max = kMaxElasticPoints,
                       .help = "control points along each axis; the outer two of each end stay"},
                      {.name = "amplitude",
                       .type = KeyType::kFloat,
                       .required = true,
                       .unit = "px",
                       .min = 0,
                       .max = 4096,
                       .help = "a control point moves by up to that along y and x; less than half "
                               "the distance between them"},
                      BorderKey()}};
}

ElasticOptions ElasticOptions::FromJson(const Json& options) {
  return {options["p"].get<double>(), options["points"].get<int>(),
          options["amplitude"].get<double>(), BorderOf(options)};
}

Status CheckFolding(const ElasticOptions& options, std::int64_t patch_height,
                    std::int64_t patch_width) {
  const double spacing = ElasticSpacing(options.points, std::min(patch_height, patch_width));
  if (options.amplitude == 0 || 2 * options.amplitude < spacing) return absl::OkStatus();
  return absl::InvalidArgumentError(StrCat("amplitude ", options.amplitude,
                                           " px folds the patch: its ", options.points,
                                           " control points are ", spacing,
                                           " px apart; give less than half of that, or fewer "
                                           "points"));
}

}  // namespace patchbay::plan
