#include "workers/jobs/staged/staged_job.h"

#include <chrono>
#include <system_error>

#include <fcntl.h>

#include "runtime/core/outcome_pseudonym.h"
#include "runtime/core/strings.h"
#include "runtime/format/json/described.h"
#include "runtime/os/file.h"
#include "runtime/os/file_lock.h"
#include "runtime/os/file_names.h"
#include "runtime/os/folder_listing.h"
#include "runtime/os/pid_stamp.h"
#include "workers/jobs/task/folder_tree.h"
#include "workers/jobs/task/image_digest.h"

namespace patchbay::workers {
namespace {

constexpr std::string_view kManifestFile = "manifest.json";
constexpr std::size_t kMaxManifestBytes = 256u << 20;
constexpr std::size_t kMaxOwnerBytes = 4096;
/// The longest wait for the lock of an output folder; the work under it takes less.
constexpr std::chrono::milliseconds kLockLimit{5'000};

Status CheckJobKey(const std::string& key, std::string_view what) {
  if (key.size() == kJobKeyDigits &&
      key.find_first_not_of("0123456789abcdef") == std::string::npos) {
    return absl::OkStatus();
  }
  return InvalidArgument(what, ": job_key: not ", kJobKeyDigits, " hex digits");
}

/// Keys beside the shared ones are the stage's own.
StatusOr<StagePayload> StagePayloadOf(const TaskContext& context, std::string_view what) {
  return FromJson<StagePayload>(context.payload, what, UnknownKeys::kSkipped);
}

Status WriteOwner(const StagedFolders& folders) {
  return ReplaceFile(folders.allowed, folders.OwnerFile(),
                     AsBytes(DumpJson(JsonOf(folders.command))), 0600);
}

/// Whether the run that wrote this file is seen to have ended.
bool OwnerHasEnded(const Folders& allowed, const std::string& path) {
  const auto text = ReadFile(allowed, path, kMaxOwnerBytes);
  if (!text.ok()) return text.status().code() == absl::StatusCode::kNotFound;
  const auto json = ParseJson(*text, "owner");
  if (!json.ok()) return false;
  const auto command = FromJson<PidStamp>(*json, "process");
  return command.ok() && HasEnded(*command);
}

/// How many runs own a job's folder, and how many of them may live.
struct Owners {
  int all = 0, living = 0;
};

Owners OwnersOf(const Folders& allowed, const std::string& job_folder) {
  Owners owners;
  const std::string folder = job_folder + "/owners";
  const auto names = ListFolder(allowed, folder);
  if (!names.ok()) {
    if (!absl::IsNotFound(names.status())) ++owners.living;  // not to be seen
    return owners;
  }
  for (const std::string& name : *names) {
    ++owners.all;
    if (!OwnerHasEnded(allowed, StrCat(folder, "/", name))) ++owners.living;
  }
  return owners;
}

protocol::TaskSpec TaskOf(std::string_view op, std::string_view label, const Json& payload) {
  protocol::TaskSpec task;
  task.op = op;
  task.label = label;
  task.payload = DumpJson(payload);
  return task;
}

/// `result`, or where it lies when it is too large to travel.
StatusOr<std::string> InlineOrFile(const StagedFolders& folders, std::string result) {
  if (result.size() <= protocol::kMaxInlineResultBytes) return result;
  const std::string digest = Sha256Of(result).Hex();
  const std::string path = folders.InOut(digest + ".result");
  PB_RETURN_IF_ERROR(WriteFileDurably(folders.allowed, path, AsBytes(result), 0600));
  return DumpJson({{"result_file", path}, {"sha256", digest}, {"bytes", result.size()}});
}

}  // namespace

StatusOr<StagedFolders> StagedFoldersOf(const TaskContext& context, const std::string& job) {
  StagedFolders folders(context.allowed);
  folders.job = job;
  PB_ASSIGN_OR_RETURN(const auto manifest,
                      FromJson<JobManifest>(context.manifest, StrCat(job, " manifest")));
  PB_ASSIGN_OR_RETURN(folders.out, context.MayWrite(manifest.out));
  folders.run = manifest.run;
  folders.command = manifest.command;
  const std::string what = StrCat(job, " payload");
  PB_ASSIGN_OR_RETURN(const StagePayload payload, StagePayloadOf(context, what));
  if (payload.job_key) {
    PB_RETURN_IF_ERROR(CheckJobKey(*payload.job_key, what));
    folders.job_key = *payload.job_key;
  }
  return folders;
}

std::string JobKeyOf(const StagedManifest& manifest, std::string_view text) {
  return HmacSha256(AsBytes(manifest.pseudonym_key),
                    StrCat(text, "\n", StrJoin(manifest.sources, "\n")))
      .Hex()
      .substr(0, kJobKeyDigits);
}

Status SaveStagedManifest(const StagedFolders& folders, const StagedManifest& manifest,
                          const std::vector<std::string>& below) {
  const OutputLock lock(folders);
  std::vector<std::string> names = {"slides", "owners"};
  names.insert(names.end(), below.begin(), below.end());
  for (const std::string& name : names) {
    PB_RETURN_IF_ERROR(MakeDirectories(folders.allowed, folders.InJob(name), 0700));
  }
  PB_RETURN_IF_ERROR(WriteOwner(folders));
  return WriteFileDurably(folders.allowed, folders.InJob(kManifestFile),
                          AsBytes(DumpJson(JsonOf(manifest))), 0600);
}

StatusOr<StagedManifest> LoadStagedManifest(const StagedFolders& folders) {
  const std::string what = StrCat(folders.job, " manifest");
  PB_ASSIGN_OR_RETURN(const std::string text,
                      ReadFile(folders.allowed, folders.InJob(kManifestFile), kMaxManifestBytes));
  PB_ASSIGN_OR_RETURN(const Json json, ParseJson(text, what, kMaxManifestBytes));
  return FromJson<StagedManifest>(json, what);
}

std::string PseudonymOf(const StagedManifest& manifest, const Digest& source) {
  return HmacSha256(AsBytes(manifest.pseudonym_key), source.Hex())
      .Hex()
      .substr(0, kPseudonymDigits);
}

protocol::TaskSpec StagedTask::Part(std::string_view op, std::string_view label,
                                    const Json& own) const {
  Json payload = JsonOf(StagePayload{folders.job_key, slide});
  payload.update(own);
  protocol::TaskSpec task = TaskOf(op, StrCat("slide ", slide, " ", label), payload);
  task.group = static_cast<std::uint32_t>(slide) + 1;
  return task;
}

Status OpenStagedJob(const TaskContext& context, const StagedJob& job, StagedTask& task) {
  PB_ASSIGN_OR_RETURN(task.folders, StagedFoldersOf(context, job.name));
  PB_ASSIGN_OR_RETURN(task.manifest, LoadStagedManifest(task.folders));
  return absl::OkStatus();
}

Status TakeSlide(TaskContext& context, StagedTask& task) {
  const std::string what = StrCat(task.folders.job, " payload");
  PB_ASSIGN_OR_RETURN(const StagePayload payload, StagePayloadOf(context, what));
  const std::int64_t slide = payload.slide;
  if (slide < 0 || slide >= static_cast<std::int64_t>(task.manifest.sources.size())) {
    return InvalidArgument(what, ": slide: ", slide, " is not in the manifest");
  }
  task.slide = slide;
  context.subjects.Add(task.Source(), task.AsSubject());
  return absl::OkStatus();
}

OutputLock::OutputLock(const StagedFolders& folders) {
  auto fd = OpenFile(folders.allowed, folders.out, O_RDONLY | O_DIRECTORY);
  if (!fd.ok()) return;
  fd_ = std::move(*fd);
  LockFile(fd_.get(), kLockLimit).IgnoreError();
}

void OwnJobFolder(const StagedFolders& folders) {
  if (Exists(folders.allowed, folders.OwnerFile())) return;
  const OutputLock lock(folders);
  WriteOwner(folders).IgnoreError();  // where the folder is gone the task says so
}

void LeaveJobFolder(const StagedFolders& folders) {
  const OutputLock lock(folders);
  RemoveFile(folders.allowed, folders.OwnerFile()).IgnoreError();
}

void RemoveJobFolder(TaskContext& context, const StagedFolders& folders) {
  const OutputLock lock(folders);
  RemoveFile(context.allowed, folders.OwnerFile()).IgnoreError();
  if (OwnersOf(context.allowed, folders.Job()).living > 0) return;
  RemoveTree(context, folders.Job()).IgnoreError();
  RemoveFile(context.allowed, folders.Root()).IgnoreError();  // where no other job has one
}

void RemoveOrphanedJobFolders(TaskContext& context, const StagedFolders& folders) {
  const OutputLock lock(folders);
  const auto names = ListFolder(context.allowed, folders.Root());
  if (!names.ok()) return;
  for (const std::string& name : *names) {
    const std::string job = StrCat(folders.Root(), "/", name);
    const Owners owners = OwnersOf(context.allowed, job);
    if (job == folders.Job() || owners.all == 0 || owners.living > 0) continue;
    RemoveTree(context, job).IgnoreError();
  }
}

std::vector<std::string> StagedJob::Ops() const {
  std::vector<std::string> ops = {StrCat(name, ".plan")};
  for (const Stage& stage : stages) ops.push_back(StrCat(name, ".", stage.name));
  if (summary != nullptr) ops.insert(ops.end(), {StrCat(name, ".summary"), StrCat(name, ".clean")});
  return ops;
}

StatusOr<TaskOutput> StagedJob::Run(std::string_view op, TaskContext& context) const {
  for (const Stage& stage : stages) {
    if (op == StrCat(name, ".", stage.name)) return RunStage(stage, context);
  }
  if (op == StrCat(name, ".plan")) return Plan(context);
  if (op == StrCat(name, ".summary")) return Summarise(context);
  PB_ASSIGN_OR_RETURN(const StagedFolders folders, StagedFoldersOf(context, name));
  RemoveJobFolder(context, folders);
  return TaskOutput{};
}

StatusOr<TaskOutput> StagedJob::Plan(TaskContext& context) const {
  StagedFolders folders(context.allowed);
  if (summary != nullptr) {
    PB_ASSIGN_OR_RETURN(folders, StagedFoldersOf(context, name));
  }
  PB_ASSIGN_OR_RETURN(PlannedJob plan, find(context, folders));
  const Json shared = JsonOf(StagePayload{plan.job_key});
  Json payload = summary == nullptr ? context.payload : shared;
  TaskOutput output;
  for (std::size_t i = 0; i < plan.sources; ++i) {
    payload[source] = i;
    output.spawned.push_back(
        TaskOf(StrCat(name, ".", stages.front().name), StrCat(source, " ", i), payload));
    output.spawned.back().group = static_cast<std::uint32_t>(i) + 1;
  }
  if (summary != nullptr) {
    output.spawned.push_back(TaskOf(StrCat(name, ".summary"), "summary", shared));
    output.spawned.back().after_failures = true;
    plan.summary_task = static_cast<std::uint32_t>(plan.sources) + 1;
  }
  output.result = DumpJson(JsonOf(plan));
  return output;
}

Status StagedJob::WithPseudonym(TaskContext& context, const Status& why) const {
  // Where the storage does not answer, the content is not asked for again.
  if (summary == nullptr || absl::IsCancelled(why) || absl::IsUnavailable(why)) return why;
  StagedTask task(context.allowed);
  if (!OpenStagedJob(context, *this, task).ok() || task.manifest.pseudonym_key.empty() ||
      !TakeSlide(context, task).ok()) {
    return why;
  }
  const auto path = context.MayRead(task.Source());
  if (!path.ok() || IsFolder(context.allowed, *path)) return why;
  const auto content = ImageDigest(context, *path);
  if (!content.ok()) return why;
  Outcome outcome = OutcomeOf(why);
  AddPseudonym(outcome, PseudonymOf(task.manifest, *content));
  return StatusOf(outcome);
}

StatusOr<TaskOutput> StagedJob::RunStage(const Stage& stage, TaskContext& context) const {
  if (summary != nullptr && &stage == &stages.front()) {
    PB_ASSIGN_OR_RETURN(const StagedFolders folders, StagedFoldersOf(context, name));
    OwnJobFolder(folders);
  }
  StatusOr<TaskOutput> output = stage.run(context);
  const bool is_final = output.ok() || absl::IsCancelled(output.status());
  if (!is_final && stage.after_failure != nullptr) {
    output = stage.after_failure(context, output.status());
  }
  if (output.ok()) return output;
  return WithPseudonym(context, output.status());
}

StatusOr<TaskOutput> StagedJob::Summarise(TaskContext& context) const {
  PB_ASSIGN_OR_RETURN(const StagedFolders folders, StagedFoldersOf(context, name));
  PB_ASSIGN_OR_RETURN(const StagedSummary all, summary(context));
  TaskOutput output;
  PB_ASSIGN_OR_RETURN(output.result, InlineOrFile(folders, DumpJson(all.result)));
  if (all.is_whole) {
    output.spawned = {
        TaskOf(StrCat(name, ".clean"), "clean", JsonOf(StagePayload{folders.job_key}))};
  } else {
    LeaveJobFolder(folders);
  }
  return output;
}

}  // namespace patchbay::workers
