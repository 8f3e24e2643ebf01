// The staging folder of a spectra job, through which its tasks pass results to one another.
//
//   OUT/.patchbay-spectra/<job key>/                    staged_job.h; slides/<i>.json: SlideSpectra
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

#include "ops/spectral/spectral_frames.h"
#include "ops/spectral/spectral_sums.h"
#include "runtime/core/fields.h"
#include "runtime/format/json/json_forms.h"
#include "workers/jobs/spectra/settings.h"
#include "workers/jobs/staged/staged_job.h"
#include "workers/jobs/task/task.h"

namespace patchbay {

/// [first row, end, first column, end]
template <>
struct FieldsOf<ops::FrameRange> {
  static constexpr auto List() {
    using T = ops::FrameRange;
    return AsArray(Field("row_begin", &T::row_begin), Field("row_end", &T::row_end),
                   Field("column_begin", &T::column_begin), Field("column_end", &T::column_end));
  }
};

}  // namespace patchbay

namespace patchbay::workers {

/// The keys of a stage's payload beside StagePayload.
struct SpectraPayload {
  std::string stamp = {};       ///< empty before the slide was opened
  ops::FrameRange frames = {};  ///< frames of a strip
  std::string mask = {};        ///< array of the tissue mask; "" where all frames count

  static constexpr auto Fields() {
    using T = SpectraPayload;
    return AsObject(Field("stamp", &T::stamp), Field("frames", &T::frames),
                    Field("mask", &T::mask));
  }
};

/// A task of a spectra job.
struct SpectraTask : StagedTask {
  using StagedTask::StagedTask;

  SpectraSettings settings;
  std::string path;  ///< canonical, readable under the task's rights
  SpectraPayload asked;
  std::function<Status()> after_file;  ///< moves the task's progress; as long as its context lives

  std::string SlideFile() const { return folders.InJob(StrCat("slides/", slide, ".json")); }
  std::string AdoptedFile() const { return folders.InJob(StrCat("adopted/", slide)); }
  std::string FailureFile() const { return folders.InJob(StrCat("failures/", slide, ".json")); }
};

/// OpenStagedJob of a spectra job.
StatusOr<SpectraTask> OpenSpectraJob(const TaskContext& context);
/// The same, TakeSlide, and the SpectraPayload.
StatusOr<SpectraTask> OpenSpectraTask(TaskContext& context);

/// 32 hex digits that only the holder of the pseudonym key can tie to the sources.
std::string SpectraJobKey(const SpectraTask& job);

/// The evidence that the image is still the same: sizes and mtimes, or a store's digest.
StatusOr<std::string> SpectraStamp(const SpectraTask& task);
/// FailedPrecondition unless the image still has the task's stamp.
Status CheckSpectraStamp(const SpectraTask& task);

/// The names of a slide in results. `digest` is that of its content; `id` is the pseudonym that
/// ingest gives the same file; `origin` is the id of the file that a store was made from, for any
/// other slide its own id. NameOfSlide reads the whole file unless the node has its digest cached.
struct SlideName {
  std::string id, origin, digest;  ///< hex

  static constexpr auto Fields() {
    using T = SlideName;
    return AsFullObject(Field("id", &T::id), Field("origin", &T::origin),
                        Field("digest", &T::digest));
  }
};
StatusOr<SlideName> NameOfSlide(TaskContext& context, const SpectraTask& task);

/// A finished slide without its sums.
struct SlideRecord {
  std::string id, origin;  ///< pseudonyms, as in SlideName
  std::string digest;      ///< digest of the source, hex
  std::string stamp;
  std::int64_t height = 0, width = 0;
  int channels = 0;  ///< channels of the image
  std::optional<double> mpp;
  std::uint64_t frames_skipped = 0, frames_off_tissue = 0;
  std::vector<std::string> coefficients;  ///< one array's hash a channel; empty without them
  Json encoded_sums;                      ///< SumsToJson

  static constexpr auto Fields() {
    using T = SlideRecord;
    return AsFullObject(Field("id", &T::id), Field("origin", &T::origin),
                        Field("digest", &T::digest), Field("stamp", &T::stamp),
                        Field("height", &T::height), Field("width", &T::width),
                        Field("channels", &T::channels), Field("mpp", &T::mpp),
                        Field("frames_skipped", &T::frames_skipped),
                        Field("frames_off_tissue", &T::frames_off_tissue),
                        Field("coefficients", &T::coefficients), Field("sums", &T::encoded_sums));
  }
};

/// One finished slide, for the summary and for later runs.
struct SlideSpectra : SlideRecord {
  std::vector<ops::SpectralSums> sums;  ///< one per channel of the settings
};
/// Fills encoded_sums.
Status SaveSlideSpectra(const SpectraTask& task, SlideSpectra& spectra);
StatusOr<SlideSpectra> LoadSlideSpectra(const SpectraTask& task);

/// Bytes that travel by their hash: returned by Save, held against it by Load (DataLoss).
StatusOr<std::string> SaveSpectraArray(const StagedFolders& folders, std::string_view bytes);
StatusOr<std::string> LoadSpectraArray(const StagedFolders& folders, const std::string& hash);

/// Leaves the failure of a slide's task for the summary, as the slide's, and returns it.
StatusOr<TaskOutput> LeaveSpectraFailure(TaskContext& context, const Status& why);

/// The reason for which a slide has no result. All empty when it could not be recorded.
struct SlideFailure {
  Outcome outcome;
  std::string id, digest;  ///< empty when the file could not be read whole

  static constexpr auto Fields() {
    return AsObject(Field("outcome", &SlideFailure::outcome), Field("id", &SlideFailure::id),
                    Field("digest", &SlideFailure::digest));
  }
};
SlideFailure LoadSpectraFailure(const SpectraTask& task);

/// Sums within JSON: a list, one text a channel.
Json SumsToJson(const std::vector<ops::SpectralSums>& sums);
StatusOr<std::vector<ops::SpectralSums>> SumsFromJson(const Json& json,
                                                      const plan::SpectralOptions& options);

}  // namespace patchbay::workers
