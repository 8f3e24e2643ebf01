// A staged job turns sources into results, one stage after another. Its tasks record finished work
// in a folder of the job, so that any of them may be killed or repeated, and the next run of the
// same command finds it done.
//
//   stage     task             a job supplies (StagedJob)
//   find      <job>.plan       its settings, its sources, whether there is room
//   open      <job>.open       one a source: adopts finished work, or spawns the parts
//   parts     <job>.*          its work, in pieces of about a second
//   join      <job>.*          one a source: the parts together, and what the source came to
//   publish   in join, where a source has a result of its own; else in the summary
//   summary   <job>.summary    what all sources came to; runs whatever failed
//   clean     <job>.clean      nothing: the same for every job
//
// A job that works inside stores that exist has neither folder nor summary: the result of each
// source's task is what the source came to.
//
//   OUT/.patchbay-<job>/<job key>/manifest.json     expanded sources and settings, owner-only
//   OUT/.patchbay-<job>/<job key>/slides/<i>.json   what source i came to, in the job's own words
//   OUT/.patchbay-<job>/<job key>/owners/<run>      a run that still needs the folder
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/core/hash.h"
#include "runtime/core/outcome.h"
#include "runtime/model/jobs/job_manifest.h"
#include "runtime/os/file.h"
#include "runtime/os/folders.h"
#include "runtime/wire/protocol/messages.h"
#include "workers/jobs/task/task.h"

namespace patchbay::workers {

inline constexpr std::size_t kJobKeyDigits = 32;

/// The CPU request of a task that completes the work of others (a join, a check); it is lower than
/// theirs. The scheduler starts a job's ready tasks with the lowest request first, so sources
/// finish one after another, instead of all after the parts of the last one.
inline constexpr std::uint32_t kEndingCpuMillis = 500;

/// The most sources one job takes.
inline constexpr std::size_t kMaxSlides = 20'000;

/// The folders of one job. Its key is a hash of sources and settings, so the same command finds the
/// same folder: that of a killed run, or of one that works at the same time. Each run of the
/// command owns the folder until it has ended; the last owner removes it.
struct StagedFolders {
  explicit StagedFolders(Folders folders) : allowed(std::move(folders)) {}

  Folders allowed;  ///< the task's
  std::string job;  ///< "ingest", "spectra"
  std::string out;  ///< canonical, writable under the task's rights
  std::string job_key;
  std::uint64_t run = 0;            ///< JobManifest::run
  std::optional<PidStamp> command;  ///< JobManifest::command

  std::string Root() const { return StrCat(out, "/.patchbay-", job); }
  std::string Job() const { return StrCat(Root(), "/", job_key); }
  /// A file or folder of the job: "slides/3.json".
  std::string InJob(std::string_view name) const { return StrCat(Job(), "/", name); }
  std::string InOut(std::string_view name) const { return StrCat(out, "/", name); }
  std::string OwnerFile() const { return StrCat(Job(), "/owners/", Hex64(run)); }
};

/// Makes other tasks that write into the same output folder wait, on all machines whose file system
/// supports locks. Without support, or when another process keeps the lock, it holds no lock.
class OutputLock {
 public:
  explicit OutputLock(const StagedFolders& folders);

 private:
  UniqueFd fd_;  ///< closing it unlocks
};

/// The folders of the job that `context` belongs to, from its JobManifest and its StagePayload.
/// PermissionDenied when the submitter's key may not write there.
StatusOr<StagedFolders> StagedFoldersOf(const TaskContext& context, const std::string& job);

/// 32 hex digits over the sources and `text`, which holds everything that the results depend on.
/// Only the holder of the pseudonym key can match them to the sources.
std::string JobKeyOf(const StagedManifest& manifest, std::string_view text);

/// Makes the job's folder and the folders `below` it, and registers its run as an owner.
Status SaveStagedManifest(const StagedFolders& folders, const StagedManifest& manifest,
                          const std::vector<std::string>& below = {});
StatusOr<StagedManifest> LoadStagedManifest(const StagedFolders& folders);

/// The pseudonym of a source in results. Only the holder of the key can match it to the file's
/// content.
std::string PseudonymOf(const StagedManifest& manifest, const Digest& source);

/// A task of a staged job as it starts.
struct StagedTask {
  explicit StagedTask(Folders allowed) : folders(std::move(allowed)) {}

  StagedFolders folders;
  StagedManifest manifest;
  std::int64_t slide = -1;  ///< number of the source that the task is about; -1: of all

  const std::string& Source() const { return manifest.sources[static_cast<std::size_t>(slide)]; }
  Subject AsSubject() const { return {SubjectKind::kSlide, static_cast<std::uint64_t>(slide), ""}; }
  /// "<job>: slide N: <cause>; <advice>".
  Status Error(absl::StatusCode code, std::string_view cause, std::string_view advice = "") const {
    return ErrorAbout(code, folders.job, AsSubject(), cause, advice);
  }
  /// A task about the same source. Its payload is a StagePayload with the keys of `own`.
  protocol::TaskSpec Part(std::string_view op, std::string_view label,
                          const Json& own = Json::object()) const;
};

/// The outcome of all sources.
struct StagedSummary {
  Json result;            ///< for the command
  bool is_whole = false;  ///< nothing failed: no retry needs the job's folder
};

/// One kind of task of a job; its op is "<job>.<name>".
struct Stage {
  std::string_view name;
  TaskFunction run;
  /// Returns `why`, or an output where the failure does not count. Not called when cancelled.
  StatusOr<TaskOutput> (*after_failure)(TaskContext& context, const Status& why) = nullptr;
};

/// A kind of job over sources: a constant with the hooks that are its own.
struct StagedJob {
  const char* name;
  /// Checks the request, finds the sources and saves the manifest, in this order: a refusal leaves
  /// nothing behind.
  StatusOr<PlannedJob> (*find)(TaskContext& context, const StagedFolders& folders);
  /// The first is spawned for each source, and spawns tasks of the others.
  std::span<const Stage> stages;
  /// Collects and publishes. Null: the job works inside stores that exist, without a folder; the
  /// tasks of its sources have the payload of the plan, and their results are the outcomes.
  StatusOr<StagedSummary> (*summary)(TaskContext& context) = nullptr;
  const char* source = "slide";  ///< the word for a source in payloads and labels

  std::vector<std::string> Ops() const;
  StatusOr<TaskOutput> Run(std::string_view op, TaskContext& context) const;

 private:
  /// Spawns the first stage for each source, in a group of its own (source number + 1), and the
  /// summary, which runs once all others have ended. The result is a PlannedJob.
  StatusOr<TaskOutput> Plan(TaskContext& context) const;
  StatusOr<TaskOutput> RunStage(const Stage& stage, TaskContext& context) const;
  /// A source's failure with the pseudonym that its results would have; `why` alone for a job that
  /// keeps names, and where the content cannot be read.
  Status WithPseudonym(TaskContext& context, const Status& why) const;
  /// A result that is too large to travel is written to OUT/<sha256>.result: {"result_file",
  /// "sha256", "bytes"}. When nothing failed it spawns "<job>.clean": the job's folder must outlive
  /// a summary whose commit was lost. Otherwise the folder stays, because a retry of the failed
  /// sources needs it.
  StatusOr<TaskOutput> Summarise(TaskContext& context) const;
};

/// Fills `task` from the payload's "job_key" and from the manifest that the job's folder has.
Status OpenStagedJob(const TaskContext& context, const StagedJob& job, StagedTask& task);

/// Takes the payload's "slide", which is one of the manifest's sources. From then on errors of the
/// task have its number in place of the source's path.
Status TakeSlide(TaskContext& context, StagedTask& task);

/// Makes the run an owner again, for one whose failed sources are tried again.
void OwnJobFolder(const StagedFolders& folders);

/// The run has ended and leaves the folder for a later one.
void LeaveJobFolder(const StagedFolders& folders);

/// The work of "<job>.clean"; harmless to repeat. The folder stays while another run owns it,
/// unless that run's command has ended.
void RemoveJobFolder(TaskContext& context, const StagedFolders& folders);

/// Removes the folders of jobs with other keys whose owners are all seen to have ended.
void RemoveOrphanedJobFolders(TaskContext& context, const StagedFolders& folders);

}  // namespace patchbay::workers
