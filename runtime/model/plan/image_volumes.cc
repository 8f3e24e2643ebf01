#include "runtime/model/plan/image_volumes.h"

#include <cmath>
#include <cstddef>

#include "runtime/core/channels.h"
#include "runtime/core/strings.h"
#include "runtime/model/plan/image_error.h"
#include "runtime/model/resolution/volume_spacing.h"

namespace patchbay::plan {
namespace {

/// Values of a row: without a step, with one, with the nearest axis too.
constexpr std::size_t kRowValues = 5, kResampledRowValues = 8, kSeparateRowValues = 9;

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
    if (!needed) continue;
    if (!images[i].volume) return ImageError(i, "its spacing and statistics are not known");
    const std::size_t further = images[i].volume->further.size();
    if (further == 0 || further + 1 == static_cast<std::size_t>(images[i].channels)) continue;
    return ImageError(i,
                      StrCat("statistics of ", further + 1, " channels for ", images[i].channels));
  }
  return absl::OkStatus();
}

}  // namespace patchbay::plan

namespace patchbay {

Json JsonForm<plan::VolumeFacts>::To(const plan::VolumeFacts& facts) {
  Json row = {facts.spacing.z, facts.spacing.y, facts.spacing.x, facts.mean, facts.std};
  if (!facts.further.empty()) {
    row[3] = Json::array({facts.mean});
    row[4] = Json::array({facts.std});
    for (const plan::ChannelNumbers& numbers : facts.further) {
      row[3].push_back(numbers.mean);
      row[4].push_back(numbers.std);
    }
  }
  if (facts.step == plan::PerAxis{}) return row;
  for (const double step : {facts.step.z, facts.step.y, facts.step.x}) row.push_back(step);
  if (facts.nearest_axis != plan::kNoAxis) row.push_back(facts.nearest_axis);
  return row;
}

StatusOr<plan::VolumeFacts> JsonForm<plan::VolumeFacts>::From(const Json& row) {
  const auto wrong = [] { return InvalidArgument("not spacing, mean and deviation of an image"); };
  if (!row.is_array() ||
      (row.size() != plan::kRowValues && row.size() != plan::kResampledRowValues &&
       row.size() != plan::kSeparateRowValues)) {
    return wrong();
  }
  const auto list = [](const Json& value) {
    return value.is_array() ? value : Json::array({value});
  };
  const Json means = list(row[3]), stds = list(row[4]);
  bool good = means.size() == stds.size() && means.size() <= kMaxChannels && !means.empty();
  for (const std::size_t i : {0, 1, 2, 5, 6, 7})
    good = good && (i >= row.size() || row[i].is_number());
  for (std::size_t c = 0; good && c < means.size(); ++c) {
    good = means[c].is_number() && stds[c].is_number();
  }
  if (!good) return wrong();
  plan::VolumeFacts facts;
  facts.spacing = {row[0].get<double>(), row[1].get<double>(), row[2].get<double>()};
  good = plan::IsLength(facts.spacing.z) && plan::IsLength(facts.spacing.y) &&
         plan::IsLength(facts.spacing.x);
  for (std::size_t c = 0; c < means.size(); ++c) {
    const plan::ChannelNumbers own{means[c].get<double>(), stds[c].get<double>()};
    good = good && std::isfinite(own.mean) && std::isfinite(own.std) && own.std >= 0;
    facts.further.push_back(own);
  }
  facts.mean = facts.further[0].mean;
  facts.std = facts.further[0].std;
  facts.further.erase(facts.further.begin());
  if (row.size() > plan::kRowValues) {
    facts.step = {row[5].get<double>(), row[6].get<double>(), row[7].get<double>()};
  }
  if (row.size() == plan::kSeparateRowValues) {
    if (row[8] != 0 && row[8] != 1 && row[8] != 2) return wrong();
    facts.nearest_axis = row[8].get<int>();
  }
  return good && plan::IsStep(facts.step) ? StatusOr<plan::VolumeFacts>(facts) : wrong();
}

}  // namespace patchbay
