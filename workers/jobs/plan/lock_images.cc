// Finds the facts of each image that a lock pins, in the same way as planning does.
#include <utility>
#include <vector>

#include "runtime/core/strings.h"
#include "runtime/format/zarr/label_sets.h"
#include "runtime/format/zarr/store_root.h"
#include "runtime/model/jobs/lock_request.h"
#include "workers/jobs/plan/image_channels.h"
#include "workers/jobs/plan/open_image.h"
#include "workers/jobs/plan/plan_tasks.h"
#include "workers/jobs/plan/stain_reference.h"
#include "workers/jobs/plan/statistics.h"
#include "workers/jobs/plan/table_rows.h"
#include "workers/sources/channel_choice.h"
#include "workers/sources/folder_walk.h"

namespace patchbay::workers {
namespace {

constexpr std::string_view kLockImages = "lock images";

struct Locked {
  plan::FoundImage found;
  TrainingImage image;
};

/// The channel that the run chooses, where it is one of several.
Status AddChannel(const plan::RunConfig& config, const OpenedImage& opened, TrainingImage& image) {
  PB_ASSIGN_OR_RETURN(const std::vector<int> chosen,
                      ChooseChannels(config.channels, opened.layout));
  const auto all = static_cast<std::size_t>(opened.layout.channels);
  image.channels = chosen.empty() ? all : chosen.size();
  if (image.channels != 1 || all == 1) return absl::OkStatus();
  image.channel = static_cast<std::size_t>(chosen.front());
  const auto facts = ChannelFactsOf(opened, chosen, image.modality);
  if (!facts.empty()) image.modality = facts.front().modality;
  return absl::OkStatus();
}

/// A set that an image lacks is left out: planning decides whether a run needs it.
StatusOr<Locked> LockImage(TaskContext& context, const ImageList& list, const plan::PlannedRow* row,
                           std::size_t number, const std::vector<std::string>& sets,
                           const plan::RunConfig& config) {
  const std::string path = list.root + list.images[number];
  const StatusOr<OpenedImage> opened = OpenForPlan(context, list, row, path, number);
  if (!opened.ok()) return About(opened.status(), "lock", path);
  Locked locked;
  locked.image.path = opened->path.empty() ? path : opened->path;
  if (row != nullptr && !row->modality.empty()) {
    PB_ASSIGN_OR_RETURN(locked.image.modality, ParseModality(row->modality));
  } else {
    locked.image.modality =
        RecordedModality(zarr::OwnAttributes(context.allowed, locked.image.path));
  }
  const Status chosen = AddChannel(config, *opened, locked.image);
  if (!chosen.ok()) return About(chosen, "lock", path);
  for (const std::string& set : sets) {
    if (!zarr::IsStore(context.allowed, locked.image.path)) break;
    const StatusOr<zarr::OpenedLabelSet> revision =
        zarr::OpenLabelSet(context.allowed, locked.image.path, set);
    if (absl::IsNotFound(revision.status())) continue;
    if (!revision.ok()) return About(revision.status(), "lock", path);
    locked.image.sets[set] = revision->digest;
  }
  locked.found = {locked.image.path, opened->digest, locked.image.sets};
  return locked;
}

}  // namespace

StatusOr<TaskOutput> RunLockImages(TaskContext& context) {
  PB_ASSIGN_OR_RETURN(const auto request,
                      FromJson<plan::LockRequest>(context.payload, kLockImages));
  PB_ASSIGN_OR_RETURN(const plan::RunConfig config,
                      plan::RunConfigFromJson(context.ops, request.config));
  PB_ASSIGN_OR_RETURN(const ImageList list, ListImages(context));
  const std::size_t count = list.images.size();
  PB_ASSIGN_OR_RETURN(const auto rows, RowsOf(context.manifest, count, 0, count));
  plan::FoundImages found;
  std::vector<TrainingImage> training;
  for (std::size_t i = 0; i < count; ++i) {
    PB_RETURN_IF_ERROR(context.CheckCancelled());
    const plan::PlannedRow* row = rows.empty() ? nullptr : &rows[i];
    context.subjects.Add(list.root + list.images[i], {SubjectKind::kImage, i, ""});
    PB_ASSIGN_OR_RETURN(Locked locked, LockImage(context, list, row, i, request.sets, config));
    if (row == nullptr || row->trains) training.push_back(std::move(locked.image));
    found.images.push_back(std::move(locked.found));
    context.AddProgress();
  }
  PB_ASSIGN_OR_RETURN(found.statistics, SumStatistics(context, config, training));
  PB_ASSIGN_OR_RETURN(found.pictures, PictureReferencesOf(context, config));
  found.skipped_files = list.skipped_files;
  TaskOutput output;
  output.result = DumpJson(JsonOf(found));
  return output;
}

}  // namespace patchbay::workers
