#include "runtime/cli/stream/realised_counts.h"

#include <cstring>
#include <iterator>

#include "runtime/core/strings.h"

namespace patchbay::cli {
namespace {

constexpr char kLabelArray[] = "label";

/// The name of a value of `label`: of its class, else the number itself.
std::string LabelName(const plan::Plan& plan, std::int64_t value) {
  if (const auto& labels = plan.images().front().labels) {
    for (const plan::NamedValue& one : labels->classes) {
      if (one.value == value) return one.name;
    }
  }
  return value == 255 ? "ignored" : StrCat(value);
}

/// The names of the classes that are drawn, in the order of the plan's sets of places.
std::vector<std::string> DrawnClasses(const plan::Plan& plan) {
  std::vector<std::string> names;
  for (const auto& [name, weight] : plan.config().class_weights) names.push_back(name);
  return names;
}

}  // namespace

void RealisedCounts::Add(const client::Batch& batch) {
  batches_.push_back({batch.epoch(), batch.index(), batch.real_count()});
  const StatusOr<client::BatchArray> label = batch.array(kLabelArray);
  if (!label.ok() || batch.on_device()) return;
  for (std::uint32_t i = 0; i < batch.real_count(); ++i) {
    std::int64_t value = 0;
    std::memcpy(&value, static_cast<const std::byte*>(label->tensor.data) + i * sizeof(value),
                sizeof(value));
    ++labels_[value];
  }
}

StatusOr<Json> RealisedCounts::Count(const plan::Plan& plan, const StreamGeometry& geometry,
                                     std::uint32_t rank, const std::vector<std::string>& slides,
                                     const std::vector<std::string>& sites) const {
  const std::vector<std::string> drawn = DrawnClasses(plan);
  std::vector<std::uint64_t> images(plan.images().size());
  std::map<std::string, std::uint64_t> by_slide, by_site, by_class;
  for (const Taken& taken : batches_) {
    const std::uint64_t first = RankRun(geometry, taken.batch, rank).first_ordinal;
    for (std::uint32_t i = 0; i < taken.patches; ++i) {
      PB_ASSIGN_OR_RETURN(const plan::PatchSource source, plan.SourceOf(taken.epoch, first + i));
      ++images[source.image];
      if (!drawn.empty() && labels_.empty()) ++by_class[drawn[source.set]];
    }
  }
  for (std::size_t i = 0; i < images.size(); ++i) {
    if (images[i] == 0) continue;
    by_slide[slides[i]] += images[i];
    if (!sites[i].empty()) by_site[sites[i]] += images[i];
  }
  for (const auto& [value, patches] : labels_) by_class[LabelName(plan, value)] += patches;
  Json counts = {{"slides", by_slide}};
  if (!by_site.empty()) counts["sites"] = by_site;
  if (!by_class.empty()) counts["classes"] = by_class;
  return counts;
}

}  // namespace patchbay::cli
