#include "workers/jobs/plan/statistics.h"

#include <vector>

#include "runtime/core/outcome.h"
#include "runtime/core/strings.h"
#include "runtime/format/zarr/label_sets.h"
#include "runtime/model/ops/stain_references.h"
#include "runtime/model/plan/class_table.h"
#include "runtime/model/plan/value_statistics.h"
#include "workers/jobs/plan/image_values.h"
#include "workers/jobs/plan/stain_reference.h"

namespace patchbay::workers {
namespace {

constexpr std::string_view kLockCtNormalize = "lock: ct_normalize";

Status RefuseCtNormalize(std::string_view cause) {
  return InvalidArgument(kLockCtNormalize, ": ", cause);
}

/// Names of the classes that count.
std::vector<std::string> ForegroundClasses(const plan::RunConfig& config,
                                           const plan::ClassHistograms& histograms) {
  if (config.foreground && !config.foreground->classes.empty()) return config.foreground->classes;
  std::vector<std::string> names;
  for (const plan::ClassHistogram& one : histograms.classes) {
    if (one.name != plan::kBackgroundClass) names.push_back(one.name);
  }
  return names;
}

Status AddImage(const Folders& allowed, const plan::RunConfig& config, const TrainingImage& image,
                plan::ClassHistograms& sum) {
  if (image.channels > 1) {
    return RefuseCtNormalize(
        StrCat("its numbers are those of one channel, and ", image.channels,
               " are read: choose one by patch.channels, or state the numbers"));
  }
  const Status is_hu = CheckHu(image.modality);
  if (!is_hu.ok()) return Annotate(is_hu, kLockCtNormalize);
  const std::string& name = config.labels.set;
  const auto locked = image.sets.find(name);
  if (locked == image.sets.end()) {
    return RefuseCtNormalize(
        StrCat("no label set '", name, "': `patchbay labels import` makes it"));
  }
  PB_ASSIGN_OR_RETURN(const zarr::OpenedLabelSet set,
                      zarr::OpenLabelRevision(allowed, image.path, name, locked->second));
  const auto histograms = ClassHistogramsOf(allowed, set, name, image.channel);
  return histograms.ok() ? sum.Merge(*histograms) : Annotate(histograms.status(), kLockCtNormalize);
}

StatusOr<plan::HuHistogram> ForegroundIn(const plan::RunConfig& config,
                                         const plan::ClassHistograms& all) {
  plan::HuHistogram sum;
  for (const std::string& one : ForegroundClasses(config, all)) {
    const plan::ClassHistogram* found = all.Find(one);
    if (found == nullptr) {
      return RefuseCtNormalize(StrCat("no training image has a class '", one, "'"));
    }
    for (const auto& [hu, count] : found->counts) sum[hu] += count;
  }
  return sum;
}

/// Whether ct_normalize is without its numbers.
bool NeedsForeground(const plan::RunConfig& config) {
  return static_cast<bool>(config.Find(plan::AwaitsStatistic));
}

/// {"lower", "upper", "mean", "std", "voxels", "window": [low, high] or null}: of the images'
/// voxels that are foreground in labels.set: sampling.foreground.classes or, without it, all
/// classes except `background`. Computed from the histograms that `labels import` stored.
StatusOr<Json> ForegroundOf(TaskContext& context, const plan::RunConfig& config,
                            const std::vector<TrainingImage>& images) {
  if (config.labels.set.empty()) {
    return InvalidArgument(
        "lock: key '", config.Find(plan::AwaitsStatistic).key,
        "': its numbers are those of the foreground of labels.set, which is missing");
  }
  plan::ClassHistograms all;
  for (const TrainingImage& image : images) {
    const Status added = AddImage(context.allowed, config, image, all);
    if (!added.ok()) return About(added, "", image.path);
    context.AddProgress();
    PB_RETURN_IF_ERROR(context.CheckCancelled());
  }
  PB_ASSIGN_OR_RETURN(const plan::HuHistogram sum, ForegroundIn(config, all));
  const auto window = plan::FindWindow(config);
  const auto found = plan::StatisticsOf(sum, window);
  if (!found) return RefuseCtNormalize("no voxel of the training images is foreground");
  if (!(found->lower < found->upper) || !(found->std > 0)) {
    return RefuseCtNormalize(StrCat(
        "the ", found->voxels, " voxels of foreground have one value between their percentiles"));
  }
  return Json{
      {"lower", found->lower},   {"upper", found->upper},
      {"mean", found->mean},     {"std", found->std},
      {"voxels", found->voxels}, {"window", window ? Json{window->low, window->high} : Json()}};
}

constexpr StatisticsProvider kProviders[] = {
    {plan::kCtForeground, NeedsForeground, ForegroundOf},
    {plan::kStainReference, NeedsCohortReference, CohortReferenceOf},
};

}  // namespace

std::span<const StatisticsProvider> StatisticsProviders() { return kProviders; }

StatusOr<Json> SumStatistics(TaskContext& context, const plan::RunConfig& config,
                             const std::vector<TrainingImage>& images) {
  Json sums = Json::object();
  for (const StatisticsProvider& provider : StatisticsProviders()) {
    if (!provider.is_needed(config)) continue;
    if (images.empty()) {
      return InvalidArgument(
          "lock: ", provider.name,
          ": no image is in a split whose role is train, over whose images it is summed");
    }
    PB_ASSIGN_OR_RETURN(sums[std::string(provider.name)], provider.sum(context, config, images));
  }
  return sums;
}

}  // namespace patchbay::workers
