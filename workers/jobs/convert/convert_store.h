// The stages of one store of the convert job.
#pragma once

#include <string>

#include "runtime/model/jobs/convert_options.h"
#include "workers/jobs/staged/staged_job.h"

namespace patchbay::workers {

struct ConvertTask : StagedTask {
  using StagedTask::StagedTask;
  ConvertOptions options;

  std::string OutcomeFile() const { return folders.InJob(StrCat("slides/", slide, ".json")); }
  /// The name that the result of a store gets.
  std::string NameFor(const std::string& store) const;
  std::string Target(const std::string& store) const { return folders.InOut(NameFor(store)); }
};

StatusOr<ConvertTask> OpenConvertTask(TaskContext& context, const StagedJob& job);

/// Spawns tasks for the parts of the result, and the one that completes it.
StatusOr<TaskOutput> OpenStoreOf(TaskContext& context, const ConvertTask& task);
StatusOr<TaskOutput> MakePartsOf(TaskContext& context, const ConvertTask& task);
/// Publishes the result and leaves the row of the store for the summary.
StatusOr<TaskOutput> FinishStoreOf(TaskContext& context, const ConvertTask& task);

}  // namespace patchbay::workers
