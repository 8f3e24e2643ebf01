#include "runtime/cli/stream/lock_now.h"

#include <algorithm>
#include <map>
#include <utility>
#include <vector>

#include "runtime/cli/skipped_files.h"
#include "runtime/cli/worker_run.h"
#include "runtime/core/strings.h"
#include "runtime/model/ops/stain_normalize.h"
#include "runtime/model/plan/run_config.h"
#include "runtime/model/plan/table_mpps.h"

namespace patchbay::cli {
namespace {

constexpr std::string_view kWhat = "result of lock.images";

/// For each image whether it is summed over: those of splits to train on are; null for all.
StatusOr<Json> TrainingOf(const client::RunFile& run) {
  if (!run.census) return Json();
  Json training = Json::array();
  bool is_any = false;
  for (const std::size_t row : run.rows) {
    const std::string& split = run.table->Cell(run.table->rows[row], run.lock_keys.split_column);
    const auto found = run.census->splits.find(split);
    const bool trains =
        found != run.census->splits.end() && found->second.role == plan::SplitRole::kTrain;
    is_any = is_any || trains;
    training.push_back(trains);
  }
  if (is_any || !plan::SumsTraining(run.config)) return training;
  return run.Locate(absl::InvalidArgumentError(StrCat(
      "key 'split_column': the lock's statistics are of the splits to train on, and none of ",
      "column '", run.lock_keys.split_column,
      "' has that role: say `splits: {NAME: {role: train}}`")));
}

/// The row of a table, or the path of an image of another dataset.
Status AddRow(const client::RunFile& run, std::size_t number, const Json& found,
              plan::LockedImage& image) {
  if (!run.table) {
    PB_ASSIGN_OR_RETURN(image.path, JsonString(found, "path", kWhat));
    image.slide_id = plan::StemOf(image.path);
    return absl::OkStatus();
  }
  const plan::CohortRow& row = run.table->rows[run.rows[number]];
  image.slide_id = row.slide_id;
  for (const std::string& column : run.lock_keys.columns) {
    const std::string& cell = run.table->Cell(row, column);
    if (!cell.empty()) image.cells[column] = cell;
  }
  image.cells[plan::kMppColumn] = run.table->Cell(row, plan::kMppColumn);
  return absl::OkStatus();
}

StatusOr<plan::LockedImage> ImageOf(const client::RunFile& run, std::size_t number,
                                    const Json& found) {
  plan::LockedImage image;
  PB_RETURN_IF_ERROR(AddRow(run, number, found, image));
  PB_ASSIGN_OR_RETURN(const std::string digest, JsonString(found, "digest", kWhat));
  PB_ASSIGN_OR_RETURN(image.digest, Digest::FromHex(digest));
  for (const auto& [table, digests] : run.places) image.places[table] = digests[number];
  const Json sets = found.value("sets", Json::object());
  for (const auto& [set, revision] : sets.items()) {
    PB_ASSIGN_OR_RETURN(const std::string hex, JsonString(sets, set.c_str(), kWhat));
    PB_ASSIGN_OR_RETURN(image.sets[set], Digest::FromHex(hex));
  }
  return image;
}

/// Enters what pictures came to, by the references of the config that name them.
Status AddPictures(const client::RunFile& run, const Json& pictures, Json& statistics) {
  const auto normalize = plan::FindStainNormalize(run.config.preprocess, run.config.augment);
  if (!normalize) return absl::OkStatus();
  const std::map<std::string, std::string> written = normalize->Unsettled();
  const std::vector<std::string>& scanners = run.scanners.names;
  for (std::size_t i = 0; i < std::max<std::size_t>(scanners.size(), 1); ++i) {
    const auto found = pictures.find(scanners.empty() ? "" : StrCat(i));
    if (found == pictures.end()) continue;
    const auto reference = written.find(scanners.empty() ? "" : scanners[i]);
    if (reference == written.end()) {
      return absl::InternalError(StrCat(kWhat, ": a picture of no reference"));
    }
    statistics[plan::PictureStatistic(reference->second)] = *found;
  }
  return absl::OkStatus();
}

}  // namespace

StatusOr<CurrentLock> LockNow(const std::string& config_path) {
  client::RunSource source;
  source.file = config_path;
  source.for_lock = true;
  PB_ASSIGN_OR_RETURN(client::RunFile run, client::ReadRun(source));
  Json manifest = run.Manifest();
  PB_ASSIGN_OR_RETURN(Json training, TrainingOf(run));
  if (!training.is_null()) manifest["training"] = std::move(training);
  const StatusOr<Json> result = RunWorkerOp(
      "lock.images", {{"config", run.Payload()}, {"sets", run.lock_keys.sets}}, manifest);
  if (!result.ok()) return run.Locate(result.status());
  PB_ASSIGN_OR_RETURN(const Json* images, JsonMember(*result, "images", kWhat));
  if (run.table && images->size() != run.rows.size()) {
    return absl::InternalError(StrCat(kWhat, ": not one an image"));
  }
  CurrentLock current;
  current.passed_over = SkippedOf(*result);
  plan::RunLock& lock = current.lock;
  lock.keys = run.lock_keys;
  lock.statistics = result->value("statistics", Json::object());
  PB_RETURN_IF_ERROR(AddPictures(run, result->value("pictures", Json::object()), lock.statistics));
  for (std::size_t i = 0; i < images->size(); ++i) {
    PB_ASSIGN_OR_RETURN(plan::LockedImage image, ImageOf(run, i, (*images)[i]));
    PB_ASSIGN_OR_RETURN(const std::string path, JsonString((*images)[i], "path", kWhat));
    PB_RETURN_IF_ERROR(run.AddContent(i, image.digest, path));
    lock.images.push_back(std::move(image));
  }
  current.run = std::move(run);
  return current;
}

}  // namespace patchbay::cli
