// Where a spectra job keeps what its tasks leave for one another.
//
//   OUT/.patchbay-spectra/<job key>/                    slide_job.h; slides/<i>.json: SlideSpectra
//   OUT/.patchbay-spectra/<job key>/adopted/<i>         slide i was finished by an earlier run
//   OUT/.patchbay-spectra/<job key>/failures/<i>.json   why slide i has no result
//   OUT/.patchbay-spectra/<job key>/arrays/<hash>       coefficient sums and tissue masks
//   OUT/.patchbay-spectra/<job key>/publishing          results are being written to OUT
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "ops/spectral/spectral_sums.h"
#include "workers/jobs/spectra/settings.h"
#include "workers/jobs/task/slide_job.h"
#include "workers/jobs/task/task.h"

namespace patchbay::workers {

struct SpectraFolders : SlideJobFolders {
  std::string AdoptedFile(std::int64_t slide) const { return StrCat(Job(), "/adopted/", slide); }
  std::string FailureFile(std::int64_t slide) const {
    return StrCat(Job(), "/failures/", slide, ".json");
  }
  std::string PublishingFile() const { return StrCat(Job(), "/publishing"); }
};

/// What spectra.plan wrote for the tasks after it.
struct SpectraManifest : SlideJobManifest {
  SpectraSettings settings;
};

/// SlideJobFoldersOf a spectra job.
StatusOr<SpectraFolders> SpectraFoldersOf(const TaskContext& context);

/// 32 hex digits that only the holder of the pseudonym key can tie to the sources.
std::string SpectraJobKey(const SpectraManifest& manifest);

Status SaveSpectraManifest(const SpectraFolders& folders, const SpectraManifest& manifest);
StatusOr<SpectraManifest> LoadSpectraManifest(const SpectraFolders& folders);

/// The slide a task is about, as it starts.
struct SpectraTask {
  SpectraFolders folders;
  SpectraManifest manifest;
  std::int64_t slide = 0;              ///< in manifest.sources
  std::string path;                    ///< canonical, readable under the task's rights
  std::function<Status()> after_file;  ///< moves the task's progress; as long as its context lives
};
/// From the payload's "job_key" and "slide". From then on errors of the task have the slide's
/// number.
StatusOr<SpectraTask> OpenSpectraTask(TaskContext& context);
/// "spectra: slide N: <cause>".
Status SlideError(absl::StatusCode code, const SpectraTask& task, std::string_view cause);

/// The evidence that the image is still the same: sizes and mtimes, or a store's digest.
StatusOr<std::string> SpectraStamp(const SpectraTask& task);
/// FailedPrecondition unless the image still has that stamp.
Status CheckSpectraStamp(const SpectraTask& task, const std::string& stamp);

/// What names a slide in results: its content's digest, and the pseudonym that ingest gives the
/// same file; `origin` is the id of what a store was made from, of anything else its own. Reads the
/// whole file unless the node remembers it.
struct SlideName {
  std::string id, origin, digest;  ///< hex
};
StatusOr<SlideName> NameOfSlide(TaskContext& context, const SpectraTask& task);

/// One finished slide, for the summary and for later runs.
struct SlideSpectra {
  std::string id, origin;  ///< pseudonyms, as in SlideName
  std::string digest;      ///< of the source, hex
  std::string stamp;
  std::int64_t height = 0, width = 0;
  int channels = 0;  ///< of the image
  std::optional<double> mpp;
  std::uint64_t frames_skipped = 0, frames_off_tissue = 0;
  std::vector<ops::SpectralSums> sums;    ///< one a channel of the settings
  std::vector<std::string> coefficients;  ///< one array's hash a channel; empty without them
};
Status SaveSlideSpectra(const SpectraFolders& folders, std::int64_t slide,
                        const SlideSpectra& spectra);
StatusOr<SlideSpectra> LoadSlideSpectra(const SpectraFolders& folders, std::int64_t slide,
                                        const plan::SpectralOptions& options);

/// Bytes that travel by their hash: returned by Save, held against it by Load (DataLoss).
StatusOr<std::string> SaveSpectraArray(const SpectraFolders& folders, std::string_view bytes);
StatusOr<std::string> LoadSpectraArray(const SpectraFolders& folders, const std::string& hash);

/// Passes a task's outcome on; an error that is final is also left for the summary as the slide's
/// failure.
StatusOr<TaskOutput> EndSpectraTask(TaskContext& context, StatusOr<TaskOutput> output);
/// Why a slide has no result. All empty when nobody could write that down.
struct SlideFailure {
  Outcome outcome;
  std::string id, digest;  ///< empty when the file could not be read whole
};
SlideFailure LoadSpectraFailure(const SpectraFolders& folders, std::int64_t slide);

/// Sums within JSON: a list, one text a channel.
Json SumsToJson(const std::vector<ops::SpectralSums>& sums);
StatusOr<std::vector<ops::SpectralSums>> SumsFromJson(const Json& json,
                                                      const plan::SpectralOptions& options);

}  // namespace patchbay::workers
