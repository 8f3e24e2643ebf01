// Turns the reference of stain_normalize into numbers before a plan is made.
#pragma once

#include <cstddef>
#include <vector>

#include "runtime/model/ops/stain_references.h"
#include "runtime/model/plan/plan.h"
#include "runtime/os/folders.h"
#include "workers/jobs/plan/statistics.h"
#include "workers/jobs/task/recorded_stain.h"
#include "workers/jobs/task/task.h"
#include "workers/stream/image_places.h"

namespace patchbay::workers {

/// Replaces references that are a cohort or a picture, and all that go by scanner, by their
/// numbers. A picture's path is in the manifest's "stain_references", {scanner or "": path}.
/// InvalidArgument when it has none.
Status SettleStainReferences(TaskContext& context, plan::RunConfig& config,
                             const std::vector<plan::PlannedImage>& images);

/// The provider of the statistic kStainReference (statistics.h): the fit of the reference "cohort"
/// of stain_normalize over those images.
bool NeedsCohortReference(const plan::RunConfig& config);
StatusOr<Json> CohortReferenceOf(TaskContext& context, const plan::RunConfig& config,
                                 const std::vector<TrainingImage>& images);

/// For a lock: {scanner or "": {"profile", "icc_to_srgb", "fit"}} of the references that are
/// pictures, whose paths are where SettleStainReferences has them from.
StatusOr<Json> PictureReferencesOf(TaskContext& context, const plan::RunConfig& config);

/// The colours to fit for this config.
StainColours StainColoursOf(const plan::RunConfig& config);

/// The fit that a run asks for.
struct WantedStain {
  StainColours colours = StainColours::kDevice;
  plan::StainReferences options = {};
  LabelRevision tissue = {};  ///< revision of options.TissueSet()
};

/// The fit of the colours of an image's tissue, which `labels tissue` left in its store, or the one
/// that ingest left there. InvalidArgument, with a remedy, for a slide and for a store without
/// them. To fit a slide here would read all of it at every start.
StatusOr<RecordedStain> StainFitOfStore(TaskContext& context, const std::string& path,
                                        const WantedStain& wanted);

/// The reason for which an image's colours could not be fitted for the profile of the config; kNone
/// if they could, and without stain_normalize.
plan::StainFallback StainFallbackOf(const plan::PlannedImage& image);

}  // namespace patchbay::workers
