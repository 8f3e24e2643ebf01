// What a job over slides keeps in its output folder while it runs: a folder of its own, and in it
// the list of its slides.
//
//   OUT/.patchbay-<job>/<job key>/manifest.json     expanded sources and settings, owner-only
//   OUT/.patchbay-<job>/<job key>/slides/<i>.json   what slide i came to, in the job's own words
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/base/hash.h"
#include "workers/jobs/task.h"

namespace patchbay::workers {

inline constexpr std::size_t kJobKeyDigits = 32;

/// The folders of one job. Its key is a hash of sources and settings, so the same command finds the
/// same folder.
struct SlideJobFolders {
  std::string job;  ///< "ingest", "spectra"
  std::string out;  ///< canonical, writable under the task's rights
  std::string job_key;

  std::string Root() const { return StrCat(out, "/.patchbay-", job); }
  std::string Job() const { return StrCat(Root(), "/", job_key); }
  std::string SlideFile(std::int64_t slide) const {
    return StrCat(Job(), "/slides/", slide, ".json");
  }
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

/// Makes the job's folder.
Status SaveSlideJobManifest(const SlideJobFolders& folders, const SlideJobManifest& manifest,
                            const Json& settings);
/// Fills `manifest`, returns the settings.
StatusOr<Json> LoadSlideJobManifest(const SlideJobFolders& folders, SlideJobManifest& manifest);

/// The payload's "slide", which is one of the manifest's.
StatusOr<std::int64_t> SlideNumberOf(const TaskContext& context, const SlideJobFolders& folders,
                                     const SlideJobManifest& manifest);

/// What a slide is called in results: only the holder of the key can tie it to the file's content.
std::string PseudonymOf(const SlideJobManifest& manifest, const Digest& source);

/// What "<job>.clean" does; harmless to repeat.
void RemoveJobFolder(const SlideJobFolders& folders);

}  // namespace patchbay::workers
