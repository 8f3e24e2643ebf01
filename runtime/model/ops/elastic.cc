#include "runtime/model/ops/elastic.h"

#include <algorithm>

#include "runtime/core/strings.h"

namespace patchbay::plan {
namespace {

Status CheckTable(const Json& options) {
  if (options.contains("amplitude") != options.contains("amplitude_mm")) return absl::OkStatus();
  return absl::InvalidArgumentError("expected one of amplitude (px) and amplitude_mm (volumes)");
}

}  // namespace

config::Key ElasticOptions::Keys() {
  const ElasticOptions defaults;
  using config::KeyType;
  return {
      .name = "elastic",
      .type = KeyType::kMap,
      .help = "deforms the patch by a cubic B-spline, with linear interpolation",
      .members = {ProbabilityKey(),
                  {.name = "points",
                   .type = KeyType::kInt,
                   .fallback = defaults.points,
                   .min = kMinElasticPoints,
                   .max = kMaxElasticPoints,
                   .help = "control points along each axis; the outer two at each end stay fixed"},
                  {.name = "amplitude",
                   .type = KeyType::kFloat,
                   .unit = "px",
                   .min = 0,
                   .max = 4096,
                   .help = "largest displacement of a control point along each axis; less than "
                           "half the distance between points"},
                  {.name = "amplitude_mm",
                   .type = KeyType::kFloat,
                   .unit = "mm",
                   .min = 1e-3,
                   .max = 4096,
                   .help = "for volumes, instead of amplitude"},
                  BorderKey()},
      .check = CheckTable};
}

ElasticOptions ElasticOptions::FromJson(const Json& options) {
  return {options["p"].get<double>(), options["points"].get<int>(), options.value("amplitude", 0.0),
          options.value("amplitude_mm", 0.0), BorderOf(options)};
}

Status CheckFolding(int points, std::initializer_list<ElasticAxis> axes) {
  for (const ElasticAxis& axis : axes) {
    const double spacing = ElasticSpacing(points, axis.side);
    if (axis.side == 1 || axis.amplitude == 0 || 2 * axis.amplitude < spacing) continue;
    return absl::InvalidArgumentError(StrCat("amplitude ", axis.amplitude,
                                             " px folds the patch: its ", points,
                                             " control points are ", spacing,
                                             " px apart; give less than half of that, or fewer "
                                             "points"));
  }
  return absl::OkStatus();
}

Status CheckFolding(const ElasticOptions& options, std::initializer_list<std::int64_t> sides) {
  for (const std::int64_t side : sides) {
    PB_RETURN_IF_ERROR(CheckFolding(options.points, {{side, options.amplitude}}));
  }
  return absl::OkStatus();
}

}  // namespace patchbay::plan
