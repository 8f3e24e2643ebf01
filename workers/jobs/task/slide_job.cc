#include "workers/jobs/task/slide_job.h"

#include <chrono>
#include <filesystem>
#include <system_error>

#include <fcntl.h>

#include "runtime/core/strings.h"
#include "runtime/model/jobs/pid_stamp.h"
#include "runtime/os/file.h"
#include "runtime/os/file_lock.h"
#include "runtime/os/file_names.h"
#include "workers/access/planned_images.h"
#include "workers/jobs/task/find_images.h"
#include "workers/jobs/task/folder_tree.h"

namespace patchbay::workers {
namespace {

constexpr std::size_t kMaxManifestBytes = 256u << 20;
constexpr std::size_t kPseudonymDigits = 16;
constexpr std::size_t kRunDigits = 16;
constexpr std::size_t kMaxOwnerBytes = 4096;
/// For the lock of an output folder: what is done under it takes less.
constexpr std::chrono::milliseconds kLockLimit{5'000};

std::string ManifestFile(const SlideJobFolders& folders) {
  return StrCat(folders.Job(), "/manifest.json");
}

Status CheckJobKey(const std::string& key, std::string_view what) {
  if (key.size() == kJobKeyDigits &&
      key.find_first_not_of("0123456789abcdef") == std::string::npos) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(StrCat(what, ": job_key: not ", kJobKeyDigits, " hex digits"));
}

/// Which run of the command the manifest was submitted by.
Status ReadRun(const Json& manifest, SlideJobFolders& folders) {
  folders.run = std::string(kRunDigits, '0');
  if (manifest.contains("run")) {
    const std::string what = StrCat(folders.job, " manifest");
    PB_ASSIGN_OR_RETURN(folders.run, JsonString(manifest, "run", what));
    if (folders.run.size() != kRunDigits ||
        folders.run.find_first_not_of("0123456789abcdef") != std::string::npos) {
      return absl::InvalidArgumentError(StrCat(what, ": run: not ", kRunDigits, " hex digits"));
    }
  }
  folders.command = manifest.value("command", Json());
  return absl::OkStatus();
}

Status WriteOwner(const SlideJobFolders& folders) {
  return ReplaceFile(folders.allowed, folders.OwnerFile(), AsBytes(DumpJson(folders.command)),
                     0600);
}

/// Whether the run that wrote this file is seen to have ended.
bool OwnerHasEnded(const Folders& allowed, const std::string& path) {
  const auto text = ReadFile(allowed, path, kMaxOwnerBytes);
  if (!text.ok()) return text.status().code() == absl::StatusCode::kNotFound;
  const auto json = ParseJson(*text, "owner");
  if (!json.ok()) return false;
  const auto command = PidStampFromJson(*json);
  return command.ok() && HasEnded(*command);
}

/// How many runs own a job's folder, and how many of them may live.
struct Owners {
  int all = 0, living = 0;
};

Owners OwnersOf(const Folders& allowed, const std::string& job_folder) {
  Owners owners;
  std::error_code error;
  for (std::filesystem::directory_iterator it(job_folder + "/owners", error), end;
       !error && it != end; it.increment(error)) {
    ++owners.all;
    if (!OwnerHasEnded(allowed, it->path().string())) ++owners.living;
  }
  if (error && error != std::errc::no_such_file_or_directory) ++owners.living;  // not to be seen
  return owners;
}

}  // namespace

StatusOr<SlideJobFolders> SlideJobFoldersOf(const TaskContext& context, const std::string& job) {
  SlideJobFolders folders;
  folders.allowed = context.allowed;
  folders.job = job;
  PB_ASSIGN_OR_RETURN(const std::string out,
                      JsonString(context.manifest, "out", StrCat(job, " manifest")));
  PB_ASSIGN_OR_RETURN(folders.out, context.MayWrite(out));
  PB_RETURN_IF_ERROR(ReadRun(context.manifest, folders));
  if (context.payload.contains("job_key")) {
    const std::string what = StrCat(job, " payload");
    PB_ASSIGN_OR_RETURN(folders.job_key, JsonString(context.payload, "job_key", what));
    PB_RETURN_IF_ERROR(CheckJobKey(folders.job_key, what));
  }
  return folders;
}

Status SaveSlideJobManifest(const SlideJobFolders& folders, const SlideJobManifest& manifest,
                            const Json& settings) {
  const OutputLock lock(folders.allowed, folders.out);
  for (const char* below : {"slides", "owners"}) {
    PB_RETURN_IF_ERROR(MakeDirectories(folders.allowed, StrCat(folders.Job(), "/", below), 0700));
  }
  PB_RETURN_IF_ERROR(WriteOwner(folders));
  const Json json = {{"sources", manifest.sources},
                     {"settings", settings},
                     {"pseudonym_key", manifest.pseudonym_key}};
  return WriteFileDurably(folders.allowed, ManifestFile(folders), AsBytes(DumpJson(json)), 0600);
}

StatusOr<Json> LoadSlideJobManifest(const SlideJobFolders& folders, SlideJobManifest& manifest) {
  const std::string what = StrCat(folders.job, " manifest");
  PB_ASSIGN_OR_RETURN(const std::string text,
                      ReadFile(folders.allowed, ManifestFile(folders), kMaxManifestBytes));
  PB_ASSIGN_OR_RETURN(const Json json, ParseJson(text, what, kMaxManifestBytes));
  PB_ASSIGN_OR_RETURN(manifest.sources, ManifestPaths(json, "sources"));
  PB_ASSIGN_OR_RETURN(manifest.pseudonym_key, JsonString(json, "pseudonym_key", what));
  PB_ASSIGN_OR_RETURN(const Json* settings, JsonMember(json, "settings", what));
  return *settings;
}

StatusOr<std::int64_t> SlideNumberOf(TaskContext& context, const SlideJobFolders& folders,
                                     const SlideJobManifest& manifest) {
  const std::string what = StrCat(folders.job, " payload");
  PB_ASSIGN_OR_RETURN(const std::int64_t slide, JsonInt(context.payload, "slide", what));
  if (slide >= 0 && slide < static_cast<std::int64_t>(manifest.sources.size())) {
    const auto index = static_cast<std::size_t>(slide);
    context.subjects.Add(manifest.sources[index], {SubjectKind::kSlide, index, ""});
    return slide;
  }
  return absl::InvalidArgumentError(StrCat(what, ": slide: ", slide, " is not in the manifest"));
}

std::string PseudonymOf(const SlideJobManifest& manifest, const Digest& source) {
  return HmacSha256(AsBytes(manifest.pseudonym_key), source.Hex())
      .Hex()
      .substr(0, kPseudonymDigits);
}

OutputLock::OutputLock(const Folders& allowed, const std::string& out) {
  auto fd = OpenFile(allowed, out, O_RDONLY | O_DIRECTORY);
  if (!fd.ok()) return;
  fd_ = std::move(*fd);
  LockFile(fd_.get(), kLockLimit).IgnoreError();
}

void OwnJobFolder(const SlideJobFolders& folders) {
  std::error_code error;
  if (std::filesystem::exists(folders.OwnerFile(), error)) return;
  const OutputLock lock(folders.allowed, folders.out);
  WriteOwner(folders).IgnoreError();  // where the folder is gone the task says so
}

void LeaveJobFolder(const SlideJobFolders& folders) {
  const OutputLock lock(folders.allowed, folders.out);
  RemoveFile(folders.allowed, folders.OwnerFile()).IgnoreError();
}

void RemoveJobFolder(TaskContext& context, const SlideJobFolders& folders) {
  const OutputLock lock(context.allowed, folders.out);
  RemoveFile(context.allowed, folders.OwnerFile()).IgnoreError();
  if (OwnersOf(context.allowed, folders.Job()).living > 0) return;
  RemoveTree(context, folders.Job()).IgnoreError();
  RemoveFile(context.allowed, folders.Root()).IgnoreError();  // where no other job has one
}

void RemoveOrphanedJobFolders(TaskContext& context, const SlideJobFolders& folders) {
  const OutputLock lock(context.allowed, folders.out);
  std::error_code error;
  for (std::filesystem::directory_iterator it(folders.Root(), error), end; !error && it != end;
       it.increment(error)) {
    const Owners owners = OwnersOf(context.allowed, it->path().string());
    if (it->path() == folders.Job() || owners.all == 0 || owners.living > 0) continue;
    RemoveTree(context, it->path().string()).IgnoreError();
  }
}

}  // namespace patchbay::workers
