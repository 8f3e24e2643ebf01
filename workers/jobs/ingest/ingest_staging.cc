#include "workers/jobs/ingest/ingest_staging.h"

#include <chrono>
#include <filesystem>
#include <utility>

#include <fcntl.h>

#include "runtime/core/outcome.h"
#include "runtime/core/strings.h"
#include "runtime/format/json/described.h"
#include "runtime/os/file_lock.h"
#include "workers/jobs/ingest/ingest.h"
#include "workers/jobs/task/task.h"

namespace patchbay::workers {
namespace {

constexpr std::size_t kMaxOutcomeBytes = 64u << 10;
/// Version of the stores: raise it when the same source and settings would give other bytes, so
/// that old work is not adopted.
constexpr int kStoreFormat = 5;
/// Publishing syncs a whole store: minutes on a slow disk. A holder that is frozen loses its lease,
/// and with that its life and the lock.
constexpr std::chrono::minutes kLockLimit{5};

}  // namespace

StatusOr<IngestTask> OpenIngestJob(const TaskContext& context) {
  IngestTask task(context.allowed);
  PB_RETURN_IF_ERROR(OpenStagedJob(context, kIngestJob, task));
  PB_ASSIGN_OR_RETURN(task.settings,
                      ReadPayload<IngestSettings>(task.manifest.settings, "ingest settings"));
  return task;
}

StatusOr<IngestTask> OpenIngestTask(TaskContext& context) {
  PB_ASSIGN_OR_RETURN(IngestTask task, OpenIngestJob(context));
  PB_RETURN_IF_ERROR(TakeSlide(context, task));
  if (task.slide < 0) return task;
  const auto text = ReadFile(task.folders.allowed, task.ChoiceFile(), kMaxOutcomeBytes);
  if (absl::IsNotFound(text.status())) return task;
  PB_RETURN_IF_ERROR(text.status());
  constexpr std::string_view kWhat = "choice of a slide";
  PB_ASSIGN_OR_RETURN(const Json json, ParseJson(*text, kWhat));
  PB_ASSIGN_OR_RETURN(task.settings.choice, FromJson<SlideChoice>(json, kWhat));
  return task;
}

Status SaveChoice(const IngestTask& task, const SlideChoice& choice) {
  return ReplaceFile(task.folders.allowed, task.ChoiceFile(), AsBytes(DumpJson(JsonOf(choice))),
                     0600);
}

std::string SlideKey(const Digest& source, const IngestSettings& settings,
                     const std::string& store) {
  return Sha256Of(StrCat("ingest ", kStoreFormat, "\n", source.Hex(), "\n", settings.Canonical(),
                         "\n", store))
      .Hex()
      .substr(0, 32);
}

StatusOr<StagingLock> StagingLock::Take(TaskContext& context, const IngestTask& task) {
  PB_ASSIGN_OR_RETURN(UniqueFd fd,
                      OpenFile(context.allowed, task.Staging() + "/lock", O_RDWR | O_CREAT, 0600));
  const Status locked = LockFile(fd.get(), kLockLimit, ProgressOf(context));
  if (absl::IsUnavailable(locked)) {
    return ErrorAbout(absl::StatusCode::kUnavailable, "lock", task.Staging(),
                      "another task has been publishing the store for minutes");
  }
  PB_RETURN_IF_ERROR(locked);
  return StagingLock(std::move(fd));
}

StatusOr<std::string> StoreName(const IngestTask& task, const std::string& source_path,
                                const Digest& source) {
  if (task.settings.keep_names) {
    return StrCat(std::filesystem::path(source_path).stem().string(), ".ome.zarr");
  }
  if (task.manifest.pseudonym_key.empty()) {
    return InvalidArgument("name store: the job has no pseudonym key and does not keep names");
  }
  return StrCat(PseudonymOf(task.manifest, source), ".ome.zarr");
}

Status SaveOutcome(const IngestTask& task, const SlideOutcome& outcome) {
  return WriteFileDurably(task.folders.allowed, task.OutcomeFile(),
                          AsBytes(DumpJson(JsonOf(outcome))), 0600);
}

StatusOr<SlideOutcome> LoadOutcome(IngestTask& task) {
  PB_ASSIGN_OR_RETURN(const std::string text,
                      ReadFile(task.folders.allowed, task.OutcomeFile(), kMaxOutcomeBytes));
  constexpr std::string_view kWhat = "slide outcome";
  PB_ASSIGN_OR_RETURN(const Json json, ParseJson(text, kWhat));
  PB_ASSIGN_OR_RETURN(SlideOutcome outcome, FromJson<SlideOutcome>(json, kWhat));
  task.slide_key = outcome.slide_key;
  return outcome;
}

}  // namespace patchbay::workers
