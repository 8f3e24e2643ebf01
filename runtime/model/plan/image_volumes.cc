#include "runtime/model/plan/image_volumes.h"

#include <cmath>

#include "runtime/core/strings.h"
#include "runtime/model/plan/image_error.h"
#include "runtime/model/plan/volume_spacing.h"

namespace patchbay::plan {
namespace {

constexpr std::size_t kRowValues = 5, kResampledRowValues = 8;

bool IsLength(double mm) { return std::isfinite(mm) && mm > 0; }

}  // namespace

ValuesNeeded ValuesNeededBy(const OpRow& op, const Json& options) {
  ValuesNeeded needed;
  needed.op = op.name();
  needed.over = options.value("over", "image");
  needed.mask = options.value("mask", "");
  const auto range = options.find("range");
  if (range != options.end()) needed.percentiles = range->get<std::array<double, 2>>();
  return needed;
}

VolumeNeeds VolumeNeedsOf(const RunConfig& config) {
  VolumeNeeds needs;
  const auto steps = config.Steps();
  if (!steps.ok()) return needs;
  needs.facts = FactsNeededBy(*steps, config.patch, PatchKindOf(config));
  if (!needs.facts.body) return needs;
  const FoundOp op = config.Find([](const OpRow& row, const Json&) { return row.needs.body; });
  needs.values = ValuesNeededBy(*op.op, *op.options);
  needs.window = FindWindow(config);
  return needs;
}

Status SettleVolumes(const RunConfig& config, std::vector<PlannedImage>& images) {
  const bool needed = VolumeNeedsOf(config).Any();
  for (std::size_t i = 0; i < images.size(); ++i) {
    if (!needed) images[i].volume.reset();
    if (!needed || images[i].volume) continue;
    return ImageError(i, "its spacing and statistics are not known");
  }
  return absl::OkStatus();
}

}  // namespace patchbay::plan

namespace patchbay {

Json JsonForm<plan::VolumeFacts>::To(const plan::VolumeFacts& facts) {
  Json row = {facts.spacing.z, facts.spacing.y, facts.spacing.x, facts.mean, facts.std};
  if (facts.step == plan::PerAxis{}) return row;
  for (const double step : {facts.step.z, facts.step.y, facts.step.x}) row.push_back(step);
  return row;
}

StatusOr<plan::VolumeFacts> JsonForm<plan::VolumeFacts>::From(const Json& row) {
  const auto wrong = [] { return InvalidArgument("not spacing, mean and deviation of an image"); };
  if (!row.is_array() ||
      (row.size() != plan::kRowValues && row.size() != plan::kResampledRowValues)) {
    return wrong();
  }
  for (const Json& value : row) {
    if (!value.is_number()) return wrong();
  }
  plan::VolumeFacts facts;
  facts.spacing = {row[0].get<double>(), row[1].get<double>(), row[2].get<double>()};
  facts.mean = row[3].get<double>();
  facts.std = row[4].get<double>();
  const bool good = plan::IsLength(facts.spacing.z) && plan::IsLength(facts.spacing.y) &&
                    plan::IsLength(facts.spacing.x) && std::isfinite(facts.mean) &&
                    std::isfinite(facts.std) && facts.std >= 0;
  if (row.size() == plan::kResampledRowValues) {
    facts.step = {row[5].get<double>(), row[6].get<double>(), row[7].get<double>()};
  }
  return good && plan::IsStep(facts.step) ? StatusOr<plan::VolumeFacts>(facts) : wrong();
}

}  // namespace patchbay
