#include "runtime/cli/stream/lock_now.h"

#include <algorithm>
#include <map>
#include <utility>
#include <vector>

#include "runtime/cli/worker_run.h"
#include "runtime/core/strings.h"
#include "runtime/model/jobs/lock_request.h"
#include "runtime/model/ops/stain_references.h"
#include "runtime/model/plan/cohort.h"
#include "runtime/model/plan/run_config.h"

namespace patchbay::cli {
namespace {

constexpr std::string_view kWhat = "result of lock.images";

/// Leaves statistics to the images of splits to train on; to all without splits.
Status ChooseTraining(client::RunFile& run) {
  if (!run.census) return absl::OkStatus();
  bool is_any = false;
  for (std::size_t i = 0; i < run.rows.size(); ++i) {
    const auto found =
        run.census->splits.find(run.table->Cell(run.RowOf(i), run.lock_keys.split_column));
    const bool trains =
        found != run.census->splits.end() && found->second.role == plan::SplitRole::kTrain;
    is_any = is_any || trains;
    run.rows[i].listed.trains = trains;
  }
  if (is_any || !plan::SumsTraining(run.config)) return absl::OkStatus();
  return run.Locate(InvalidArgument(
      "key 'split_column': the lock's statistics are of the splits to train on, and none of ",
      "column '", run.lock_keys.split_column,
      "' has that role: say `splits: {NAME: {role: train}}`"));
}

/// The row of a table, or the path of an image of another dataset.
plan::LockedImage ImageOf(const client::RunFile& run, std::size_t number,
                          const plan::FoundImage& found) {
  plan::LockedImage image{.digest = found.digest, .sets = found.sets};
  if (!run.table) {
    image.path = found.path;
    image.slide_id = plan::StemOf(found.path);
    return image;
  }
  const plan::CohortRow& row = run.RowOf(number);
  image.slide_id = row.slide_id;
  image.places = run.rows[number].places;
  std::vector<std::string> columns = run.lock_keys.columns;
  columns.insert(columns.end(), {kFocalPlaneColumn, kOpticalPathColumn});
  for (const std::string& column : columns) {
    const std::string& cell = run.table->Cell(row, column);
    if (!cell.empty()) image.cells[column] = cell;
  }
  image.cells[plan::kMppColumn] = run.table->Cell(row, plan::kMppColumn);
  return image;
}

/// Adds the fits of pictures, under the references of the config that name them.
Status AddPictures(const client::RunFile& run, const Json& pictures, Json& statistics) {
  const auto normalize = plan::FindStainReferences(run.config);
  if (!normalize) return absl::OkStatus();
  const std::map<std::string, std::string> written = normalize->Unsettled();
  const std::vector<std::string>& scanners = run.scanners;
  for (std::size_t i = 0; i < std::max<std::size_t>(scanners.size(), 1); ++i) {
    const auto found = pictures.find(scanners.empty() ? "" : StrCat(i));
    if (found == pictures.end()) continue;
    const auto reference = written.find(scanners.empty() ? "" : scanners[i]);
    if (reference == written.end()) return Internal(kWhat, ": a picture of no reference");
    statistics[plan::PictureStatistic(reference->second)] = *found;
  }
  return absl::OkStatus();
}

}  // namespace

StatusOr<CurrentLock> LockNow(const plan::OpTable& ops, const std::string& config_path) {
  client::RunSource source;
  source.ops = &ops;
  source.file = config_path;
  source.for_lock = true;
  PB_ASSIGN_OR_RETURN(client::RunFile run, client::ReadRun(source));
  PB_RETURN_IF_ERROR(ChooseTraining(run));
  const plan::LockRequest request{plan::ToJson(run.WithoutPaths()),
                                  plan::SetsToLock(run.lock_keys)};
  const StatusOr<Json> result = RunWorkerOp("lock.images", JsonOf(request), JsonOf(run.Manifest()));
  if (!result.ok()) return run.Locate(result.status());
  PB_ASSIGN_OR_RETURN(const auto found, FromJson<plan::FoundImages>(*result, kWhat));
  if (run.table && found.images.size() != run.rows.size()) {
    return Internal(kWhat, ": expected one per image");
  }
  CurrentLock current;
  current.skipped_files = found.skipped_files;
  plan::RunLock& lock = current.lock;
  lock.keys = run.lock_keys;
  lock.statistics = found.statistics;
  PB_RETURN_IF_ERROR(AddPictures(run, found.pictures, lock.statistics));
  for (std::size_t i = 0; i < found.images.size(); ++i) {
    PB_RETURN_IF_ERROR(run.AddContent(i, found.images[i].digest, found.images[i].path));
    lock.images.push_back(ImageOf(run, i, found.images[i]));
  }
  current.run = std::move(run);
  return current;
}

}  // namespace patchbay::cli
