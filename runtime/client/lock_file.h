// The lock of a run, next to its config: `run.yaml` and `run.lock`.
#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "runtime/core/status.h"
#include "runtime/format/json/json.h"
#include "runtime/model/jobs/stream_request.h"
#include "runtime/model/plan/cohort_table.h"
#include "runtime/model/plan/run_lock.h"

namespace patchbay::client {

/// "x/run.lock" of "x/run.yaml".
std::string LockPathOf(const std::string& config_path);

/// The lock of a run; nothing where there is none. InvalidArgument for a file that is not a lock;
/// FailedPrecondition when it is of other keys than the config's.
StatusOr<std::optional<plan::RunLock>> ReadLock(const std::string& config_path,
                                                const plan::LockedKeys& keys);

/// Keeps only the rows of the lock in the table, in the lock's order. FailedPrecondition naming
/// file, line and column: a row is missing, or differs in a column that the run uses.
Status KeepLockedRows(const plan::RunLock& lock, plan::CohortTable& table);

/// The pins that travel to the task that opens the image.
plan::RowPins PinsOf(const plan::LockedImage& image);

/// Sets the statistics of a lock in the ops that need them. FailedPrecondition for statistics of
/// another window or stain profile.
Status ApplyStatistics(const Json& statistics, plan::RunConfig& config);
/// FailedPrecondition unless `positions`, which a table has for an image, equal those that the lock
/// has of that table.
Status CheckPlacesPinned(const plan::LockedImage& image, const std::string& table,
                         std::string_view positions);
/// FailedPrecondition where one of `pictures`, references that no statistic stands for, is left.
Status CheckPicturesPinned(const std::map<std::string, std::string>& pictures);

}  // namespace patchbay::client
