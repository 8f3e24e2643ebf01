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

VolumeNeeds VolumeNeedsOf(const RunConfig& config) {
  VolumeNeeds needs;
  const auto steps = SortOps(config.preprocess, config.augment);
  if (!steps.ok()) return needs;
  needs.facts = FactsNeededBy(*steps, config.patch, PatchKindOf(config));
  if (!needs.facts.body) return needs;
  for (const OpStep& step : *steps) {
    if (step.op == OpNumber::kWindow) needs.window = WindowOptions::FromJson(step.options);
  }
  return needs;
}

Json ToJson(const VolumeNeeds& needs) {
  Json value = {{"spacing", needs.facts.spacing}, {"body", needs.facts.body}};
  if (needs.window) value["window"] = {needs.window->low, needs.window->high};
  return value;
}

StatusOr<VolumeNeeds> VolumeNeedsFromJson(const Json& value) {
  constexpr std::string_view kWhat = "read needs of volumes";
  VolumeNeeds needs;
  PB_ASSIGN_OR_RETURN(needs.facts.spacing, JsonBool(value, "spacing", kWhat));
  PB_ASSIGN_OR_RETURN(needs.facts.body, JsonBool(value, "body", kWhat));
  if (!value.contains("window")) return needs;
  const Json& window = value["window"];
  if (!window.is_array() || window.size() != 2 || !window[0].is_number() ||
      !window[1].is_number()) {
    return absl::InvalidArgumentError(StrCat(kWhat, ": window: not two numbers"));
  }
  needs.window = {window[0].get<double>(), window[1].get<double>()};
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

Json ToJson(const VolumeFacts& facts) {
  Json row = {facts.spacing.z, facts.spacing.y, facts.spacing.x, facts.mean, facts.std};
  if (facts.step == PerAxis{}) return row;
  for (const double step : {facts.step.z, facts.step.y, facts.step.x}) row.push_back(step);
  return row;
}

StatusOr<VolumeFacts> VolumeFactsFromJson(const Json& row) {
  const auto wrong = [] {
    return absl::InvalidArgumentError("plan: volumes: not spacing, mean and deviation of an image");
  };
  if (!row.is_array() || (row.size() != kRowValues && row.size() != kResampledRowValues)) {
    return wrong();
  }
  for (const Json& value : row) {
    if (!value.is_number()) return wrong();
  }
  VolumeFacts facts;
  facts.spacing = {row[0].get<double>(), row[1].get<double>(), row[2].get<double>()};
  facts.mean = row[3].get<double>();
  facts.std = row[4].get<double>();
  const bool good = IsLength(facts.spacing.z) && IsLength(facts.spacing.y) &&
                    IsLength(facts.spacing.x) && std::isfinite(facts.mean) &&
                    std::isfinite(facts.std) && facts.std >= 0;
  if (row.size() == kResampledRowValues) {
    facts.step = {row[5].get<double>(), row[6].get<double>(), row[7].get<double>()};
  }
  return good && IsStep(facts.step) ? StatusOr<VolumeFacts>(facts) : wrong();
}

Json VolumesToJson(const RunConfig& config, const std::vector<PlannedImage>& images) {
  if (!VolumeNeedsOf(config).Any()) return nullptr;
  Json rows = Json::array();
  for (const PlannedImage& image : images) rows.push_back(ToJson(*image.volume));
  return rows;
}

Status VolumesFromJson(const RunConfig& config, const Json& rows,
                       std::vector<PlannedImage>& images) {
  if (!VolumeNeedsOf(config).Any()) return absl::OkStatus();
  if (!rows.is_array() || rows.size() != images.size()) {
    return absl::InvalidArgumentError("plan: volumes: not one row an image");
  }
  for (std::size_t i = 0; i < images.size(); ++i) {
    PB_ASSIGN_OR_RETURN(images[i].volume, VolumeFactsFromJson(rows[i]));
  }
  return absl::OkStatus();
}

}  // namespace patchbay::plan
