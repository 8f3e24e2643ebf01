#include "workers/jobs/plan/statistics.h"

#include "runtime/model/ops/stain_references.h"
#include "runtime/model/plan/foreground_statistics.h"
#include "workers/jobs/plan/foreground.h"
#include "workers/jobs/plan/stain_reference.h"

namespace patchbay::workers {
namespace {

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
      return absl::InvalidArgumentError(StrCat("lock: ", provider.name,
                                               ": no image is in a split whose role is train, "
                                               "over whose images it is summed"));
    }
    PB_ASSIGN_OR_RETURN(sums[std::string(provider.name)], provider.sum(context, config, images));
  }
  return sums;
}

}  // namespace patchbay::workers
