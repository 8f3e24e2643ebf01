// What a lock of a run says of its images, found out as planning does.
#include <utility>
#include <vector>

#include "runtime/core/strings.h"
#include "runtime/format/zarr/label_sets.h"
#include "workers/access/planned_images.h"
#include "workers/jobs/plan/open_image.h"
#include "workers/jobs/plan/stain_reference.h"
#include "workers/jobs/plan/statistics.h"
#include "workers/jobs/plan/stream_plan.h"
#include "workers/jobs/plan/table_rows.h"
#include "workers/jobs/task/find_images.h"

namespace patchbay::workers {
namespace {

constexpr std::string_view kWhat = "lock images";

/// The dataset's images, and of a table its rows.
struct Listed {
  std::vector<std::string> paths;
  FilesByKind passed_over;
  std::optional<ListedRows> table;
};

StatusOr<Listed> ListImages(TaskContext& context) {
  Listed listed;
  if (IsTable(context.manifest)) {
    PB_ASSIGN_OR_RETURN(listed.paths, ListRows(context, listed.table.emplace()));
    return listed;
  }
  PB_ASSIGN_OR_RETURN(const std::vector<std::string> named,
                      ManifestPaths(context.manifest, "images"));
  PB_ASSIGN_OR_RETURN(
      listed.paths,
      FindImages(context, named, {.keep_unreadable = true, .passed_over = &listed.passed_over}));
  return listed;
}

struct Locked {
  Json json;  ///< {"path", "digest", "sets": {name: digest}}
  TrainingImage image;
};

/// A set that an image lacks is left out: whether a run needs it, planning says.
StatusOr<Locked> LockImage(TaskContext& context, const Listed& listed, std::size_t number,
                           const std::vector<std::string>& sets) {
  const std::string& path = listed.paths[number];
  const StatusOr<OpenedImage> opened =
      OpenForPlan(context, listed.table ? &*listed.table : nullptr, path, number);
  if (!opened.ok()) return AboutFile(opened.status(), "lock", path);
  Locked locked;
  locked.image.path = opened->path.empty() ? path : opened->path;
  locked.json = {
      {"path", locked.image.path}, {"digest", opened->digest.Hex()}, {"sets", Json::object()}};
  for (const std::string& set : sets) {
    if (!IsStore(locked.image.path)) break;
    const StatusOr<zarr::OpenedLabelSet> revision =
        zarr::OpenLabelSet(context.allowed, locked.image.path, set);
    if (absl::IsNotFound(revision.status())) continue;
    if (!revision.ok()) return AboutFile(revision.status(), "lock", path);
    locked.json["sets"][set] = revision->digest.Hex();
    locked.image.sets[set] = revision->digest;
  }
  return locked;
}

/// Of a table without splits, and without a table, all images train.
StatusOr<bool> IsTraining(const TaskContext& context, std::size_t number) {
  const Json training = context.manifest.value("training", Json());
  if (training.is_null()) return true;
  if (!training.is_array() || number >= training.size() || !training[number].is_boolean()) {
    return absl::InvalidArgumentError("lock images: manifest: training: not one an image");
  }
  return training[number].get<bool>();
}

}  // namespace

StatusOr<TaskOutput> RunLockImages(TaskContext& context) {
  PB_ASSIGN_OR_RETURN(const std::vector<std::string> sets, ManifestPaths(context.payload, "sets"));
  PB_ASSIGN_OR_RETURN(const Json* values, JsonMember(context.payload, "config", kWhat));
  PB_ASSIGN_OR_RETURN(const plan::RunConfig config, plan::RunConfigFromJson(*values));
  PB_ASSIGN_OR_RETURN(const Listed listed, ListImages(context));
  Json images = Json::array();
  std::vector<TrainingImage> training;
  for (std::size_t i = 0; i < listed.paths.size(); ++i) {
    PB_RETURN_IF_ERROR(context.CheckCancelled());
    context.subjects.Add(listed.paths[i], {SubjectKind::kImage, i, ""});
    PB_ASSIGN_OR_RETURN(Locked locked, LockImage(context, listed, i, sets));
    PB_ASSIGN_OR_RETURN(const bool trains, IsTraining(context, i));
    if (trains) training.push_back(std::move(locked.image));
    images.push_back(std::move(locked.json));
    context.AddProgress();
  }
  TaskOutput output;
  PB_ASSIGN_OR_RETURN(Json statistics, SumStatistics(context, config, training));
  PB_ASSIGN_OR_RETURN(Json pictures, PictureReferencesOf(context, config));
  output.result = DumpJson({{"images", std::move(images)},
                            {"statistics", std::move(statistics)},
                            {"pictures", std::move(pictures)},
                            {"passed_over", Json(listed.passed_over)}});
  return output;
}

}  // namespace patchbay::workers
