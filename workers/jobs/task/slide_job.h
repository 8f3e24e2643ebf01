// What a job over slides keeps in its output folder while it runs: a folder of its own, and in it
// the list of its slides.
//
//   OUT/.patchbay-<job>/<job key>/manifest.json     expanded sources and settings, owner-only
//   OUT/.patchbay-<job>/<job key>/slides/<i>.json   what slide i came to, in the job's own words
//   OUT/.patchbay-<job>/<job key>/owners/<run>      a run that still needs the folder
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/core/hash.h"
#include "runtime/os/file.h"
#include "runtime/os/folders.h"
#include "workers/jobs/task/task.h"

namespace patchbay::workers {

inline constexpr std::size_t kJobKeyDigits = 32;

/// The folders of one job. Its key is a hash of sources and settings, so the same command finds the
/// same folder: what a killed one left, or what another one works in at the same time. Each run of
/// the command owns the folder until it has ended; the last owner removes it.
struct SlideJobFolders {
  Folders allowed;  ///< those of the task
  std::string job;  ///< "ingest", "spectra"
  std::string out;  ///< canonical, writable under the task's rights
  std::string job_key;
  std::string run;  ///< 16 hex digits, another for every submitted job
  Json command;     ///< PidStamp of the command that the run ends with; null: of a cluster

  std::string Root() const { return StrCat(out, "/.patchbay-", job); }
  std::string Job() const { return StrCat(Root(), "/", job_key); }
  std::string SlideFile(std::int64_t slide) const {
    return StrCat(Job(), "/slides/", slide, ".json");
  }
  std::string OwnerFile() const { return StrCat(Job(), "/owners/", run); }
};

/// Keeps other tasks of jobs into the same output folder waiting, on all machines whose file system
/// passes locks on. Where it does not, or somebody else keeps the lock, it holds nothing.
class OutputLock {
 public:
  OutputLock(const Folders& allowed, const std::string& out);

 private:
  UniqueFd fd_;  ///< closing it unlocks
};

/// The folders of the job that `context` belongs to, from the submitted manifest ("out") and
/// payload ("job_key", empty before "<job>.plan" has made it). PermissionDenied when the
/// submitter's key may not write there.
StatusOr<SlideJobFolders> SlideJobFoldersOf(const TaskContext& context, const std::string& job);

/// What "<job>.plan" wrote for the tasks after it, besides the job's own settings.
struct SlideJobManifest {
  std::vector<std::string> sources;  ///< canonical paths, in the order of slide numbers
  std::string pseudonym_key;         ///< hex; empty when the job names slides after their files
};

/// Makes the job's folder and its run an owner of it.
Status SaveSlideJobManifest(const SlideJobFolders& folders, const SlideJobManifest& manifest,
                            const Json& settings);
/// Fills `manifest`, returns the settings.
StatusOr<Json> LoadSlideJobManifest(const SlideJobFolders& folders, SlideJobManifest& manifest);

/// The payload's "slide", which is one of the manifest's. Errors of the task name it from there on.
StatusOr<std::int64_t> SlideNumberOf(TaskContext& context, const SlideJobFolders& folders,
                                     const SlideJobManifest& manifest);

/// What a slide is called in results: only the holder of the key can tie it to the file's content.
std::string PseudonymOf(const SlideJobManifest& manifest, const Digest& source);

/// Makes the run an owner again, for one whose failed slides are tried again.
void OwnJobFolder(const SlideJobFolders& folders);

/// The run has ended and leaves the folder for a later one.
void LeaveJobFolder(const SlideJobFolders& folders);

/// What "<job>.clean" does; harmless to repeat. The folder stays while another run owns it, unless
/// the command of that one is seen to have ended.
void RemoveJobFolder(TaskContext& context, const SlideJobFolders& folders);

/// Removes the folders of jobs with other keys whose owners are all seen to have ended.
void RemoveOrphanedJobFolders(TaskContext& context, const SlideJobFolders& folders);

}  // namespace patchbay::workers
