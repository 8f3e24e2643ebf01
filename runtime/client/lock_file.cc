#include "runtime/client/lock_file.h"

#include <unordered_map>
#include <utility>

#include "runtime/core/strings.h"
#include "runtime/model/ops/stain_references.h"
#include "runtime/model/plan/cohort.h"
#include "runtime/model/plan/image_colours.h"
#include "runtime/os/file.h"

namespace patchbay::client {
namespace {

constexpr std::string_view kCure = "; `patchbay lock --update` takes it as it is now";

/// Applies the statistics of the foreground, which are of values after the config's window.
Status ApplyForeground(const Json& statistics, plan::RunConfig& config) {
  const plan::FoundOp waits = config.Find(plan::AwaitsStatistic);
  if (!waits) return absl::OkStatus();
  const auto found = statistics.find(waits.op->statistic.name);
  if (found == statistics.end()) return absl::OkStatus();
  const auto window = plan::FindWindow(config);
  const Json wanted = window ? Json{window->low, window->high} : Json();
  if (!found->is_object() || found->value("window", Json()) != wanted) {
    return FailedPrecondition("the run's lock has the numbers of ", waits.op->name(),
                              " for another window", kCure);
  }
  return plan::SettleStatistics(statistics, config);
}

/// The numbers of pictures, which are of colours as the config has them fitted.
Status ApplyPictures(const Json& statistics, plan::RunConfig& config) {
  const auto normalize = plan::FindStainReferences(config);
  if (!normalize) return absl::OkStatus();
  const bool to_srgb = static_cast<bool>(plan::FindIccOp(config));
  for (const auto& [scanner, reference] : normalize->Unsettled()) {
    const auto found = plan::IsPictureReference(reference)
                           ? statistics.find(plan::PictureStatistic(reference))
                           : statistics.end();
    if (found == statistics.end()) continue;
    if (!found->is_object() || found->value("profile", Json()) != NameOf(normalize->profile) ||
        found->value("icc_to_srgb", Json()) != to_srgb) {
      return FailedPrecondition("the run's lock has the numbers of the stain reference '",
                                reference, "' for another profile, or other colours (icc_to_srgb)",
                                kCure);
    }
    plan::SettleStainReference(config, scanner, found->value("fit", Json::array()));
  }
  return absl::OkStatus();
}

}  // namespace

std::string LockPathOf(const std::string& config_path) {
  const std::size_t name = config_path.rfind('/') + 1;  // 0 without a slash
  const std::size_t dot = config_path.rfind('.');
  const bool has_ending = dot != std::string::npos && dot > name;
  return StrCat(has_ending ? config_path.substr(0, dot) : config_path, ".lock");
}

StatusOr<std::optional<plan::RunLock>> ReadLock(const std::string& config_path,
                                                const plan::LockedKeys& keys) {
  const std::string path = LockPathOf(config_path);
  const StatusOr<std::string> text = ReadFile(Folders::OfThisUser(), path, plan::kMaxLockBytes);
  if (absl::IsNotFound(text.status())) return std::optional<plan::RunLock>();
  if (!text.ok()) return Annotate(text.status(), "read lock");
  PB_ASSIGN_OR_RETURN(plan::RunLock lock, plan::ParseRunLock(*text, path));
  const std::string_view key = plan::DifferingKey(lock.keys, keys);
  if (key.empty()) return std::optional<plan::RunLock>(std::move(lock));
  return FailedPrecondition(path, ": the config's ", key, " is not the lock's", kCure);
}

Status KeepLockedRows(const plan::RunLock& lock, plan::CohortTable& table) {
  std::unordered_map<std::string_view, const plan::CohortRow*> by_id;
  for (const plan::CohortRow& row : table.rows) by_id[row.slide_id] = &row;
  std::vector<plan::CohortRow> kept;
  for (const plan::LockedImage& image : lock.images) {
    const auto found = by_id.find(image.slide_id);
    if (found == by_id.end()) {
      return FailedPrecondition(table.source, ": no row has the slide_id '", image.slide_id,
                                "' of the run's lock", kCure);
    }
    std::vector<std::string> columns = lock.keys.columns;
    if (image.cells.contains(plan::kMppColumn)) columns.emplace_back(plan::kMppColumn);
    columns.insert(columns.end(), {kFocalPlaneColumn, kOpticalPathColumn});
    for (const std::string& column : columns) {
      const auto locked = image.cells.find(column);
      const std::string cell = locked == image.cells.end() ? "" : locked->second;
      const std::string& now = table.Cell(*found->second, column);
      if (now == cell) continue;
      return FailedPrecondition(
          MessageOf(table.Wrong(*found->second, column,
                                StrCat("it is '", now, "', '", cell, "' in the run's lock"))),
          kCure);
    }
    kept.push_back(*found->second);
  }
  table.rows = std::move(kept);
  return absl::OkStatus();
}

plan::RowPins PinsOf(const plan::LockedImage& image) { return {image.digest, image.sets}; }

Status ApplyStatistics(const Json& statistics, plan::RunConfig& config) {
  const auto found = statistics.find(std::string(plan::kStainReference));
  if (found != statistics.end()) {
    plan::SettleCohortReferences(config, *found);
  }
  PB_RETURN_IF_ERROR(ApplyPictures(statistics, config));
  return ApplyForeground(statistics, config);
}

Status CheckPlacesPinned(const plan::LockedImage& image, const std::string& table,
                         std::string_view positions) {
  const auto pinned = image.places.find(table);
  if (pinned != image.places.end() && pinned->second == plan::DigestOfPlaces(positions)) {
    return absl::OkStatus();
  }
  return FailedPrecondition(table, ": the positions of '", image.slide_id,
                            "' are not those of the run's lock", kCure);
}

Status CheckPicturesPinned(const std::map<std::string, std::string>& pictures) {
  if (pictures.empty()) return absl::OkStatus();
  return FailedPrecondition("the run's lock has no numbers of the stain reference ",
                            pictures.begin()->second, kCure);
}

}  // namespace patchbay::client
