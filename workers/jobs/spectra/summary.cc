// The end of the job: what every slide came to, the cohort, and the files people get.
#include <algorithm>
#include <filesystem>
#include <map>

#include "runtime/core/strings.h"
#include "runtime/format/json/outcome_json.h"
#include "runtime/os/file.h"
#include "workers/jobs/spectra/figures.h"
#include "workers/jobs/spectra/publish.h"
#include "workers/jobs/spectra/spectra.h"
#include "workers/jobs/spectra/staging.h"
#include "workers/jobs/task/result_file.h"
#include "workers/jobs/task/slide_tasks.h"

namespace patchbay::workers {
namespace {

constexpr int kDocumentVersion = 1;

/// Everything a job has to say, as it is gathered.
struct Gathered {
  Json slides = Json::array();  ///< of the document, by id
  Json rows = Json::array();    ///< of the summary, beside them
  Json failed = Json::array(), failed_rows = Json::array();
  Json duplicates = Json::array(), duplicate_rows = Json::array();
  Json cohort;
  std::vector<SpectraSource> sources;
};

/// One slide on its way into the document.
struct Finished {
  Json figures, row;
};

class Gatherer {
 public:
  Gatherer(TaskContext& context, const SpectraFolders& folders, const SpectraManifest& manifest)
      : context_(context),
        folders_(folders),
        manifest_(manifest),
        cohort_(WithoutArrays(manifest.settings.spectral)) {}

  StatusOr<Gathered> Run() {
    const auto count = static_cast<std::int64_t>(manifest_.sources.size());
    for (std::int64_t slide = 0; slide < count; ++slide) {
      PB_RETURN_IF_ERROR(AddSlide(slide));
      context_.AddProgress();
      PB_RETURN_IF_ERROR(context_.CheckCancelled());
    }
    for (auto& [id, finished] : finished_) {
      out_.slides.push_back(std::move(finished.figures));
      out_.rows.push_back(std::move(finished.row));
    }
    MarkOutliers(out_.slides);
    std::vector<std::string> outliers;
    for (std::size_t i = 0; i < out_.slides.size(); ++i) {
      for (const char* key : {"id", "frames", "frames_skipped", "mean_db", "std_db", "focus_db",
                              "outlier", "outlier_reasons"}) {
        out_.rows[i][key] = out_.slides[i][key];
      }
      if (out_.slides[i]["outlier"].get<bool>()) outliers.push_back(out_.slides[i]["id"]);
    }
    PB_ASSIGN_OR_RETURN(out_.cohort, cohort_.Finish(outliers));
    return std::move(out_);
  }

 private:
  static plan::SpectralOptions WithoutArrays(plan::SpectralOptions options) {
    options.coefficients = false;
    return options;
  }

  Status AddSlide(std::int64_t slide) {
    auto loaded = LoadSlideSpectra(folders_, slide, WithoutArrays(manifest_.settings.spectral));
    if (!loaded.ok()) {
      AddFailure(slide);
      return absl::OkStatus();
    }
    out_.sources.push_back({loaded->id, loaded->digest});
    if (finished_.contains(loaded->id)) {
      out_.duplicates.push_back({{"index", slide}, {"id", loaded->id}});
      out_.duplicate_rows.push_back({{"source_index", slide}, {"id", loaded->id}});
      return absl::OkStatus();
    }
    PB_RETURN_IF_ERROR(cohort_.Add(*loaded));
    Finished& finished = finished_[loaded->id];
    PB_ASSIGN_OR_RETURN(finished.figures, SlideFigures(*loaded, manifest_.settings.spectral));
    std::error_code error;
    const bool adopted = std::filesystem::exists(folders_.AdoptedFile(slide), error);
    const std::int64_t pixels = loaded->height * loaded->width * loaded->channels;
    finished.row = {
        {"source_index", slide}, {"pixel_bytes", adopted ? 0 : pixels}, {"already_there", adopted}};
    return absl::OkStatus();
  }

  void AddFailure(std::int64_t slide) {
    const SlideFailure failure = LoadSpectraFailure(folders_, slide);
    out_.sources.push_back({failure.id, failure.digest});
    out_.failed_rows.push_back({{"source_index", slide}, {"outcome", ToJson(failure.outcome)}});
    out_.failed.push_back(
        {{"index", slide},
         {"id", failure.id.empty() ? Json() : Json(failure.id)},
         {"reason", failure.outcome.code == 0 ? "it was not finished" : TextOf(failure.outcome)}});
  }

  TaskContext& context_;
  const SpectraFolders& folders_;
  const SpectraManifest& manifest_;
  CohortFigures cohort_;
  std::map<std::string, Finished> finished_;  ///< by id
  Gathered out_;
};

/// Read again one by one: all arrays of a large cohort would not fit in memory.
Status PublishAllCoefficients(TaskContext& context, const SpectraFolders& folders,
                              const SpectraManifest& manifest, const Json& rows) {
  if (!manifest.settings.spectral.coefficients) return absl::OkStatus();
  for (const Json& row : rows) {
    PB_ASSIGN_OR_RETURN(SlideSpectra slide,
                        LoadSlideSpectra(folders, row["source_index"].get<std::int64_t>(),
                                         manifest.settings.spectral));
    PB_RETURN_IF_ERROR(PublishCoefficients(context, folders, manifest, slide));
  }
  return absl::OkStatus();
}

Json CohortRow(const Json& cohort) {
  if (cohort.is_null()) return cohort;
  Json row;
  for (const char* key : {"frames", "frames_skipped", "mean_db", "std_db", "focus_db"}) {
    row[key] = cohort[key];
  }
  return row;
}

StatusOr<TaskOutput> Summarise(TaskContext& context) {
  PB_ASSIGN_OR_RETURN(const SpectraFolders folders, SpectraFoldersOf(context));
  PB_ASSIGN_OR_RETURN(const SpectraManifest manifest, LoadSpectraManifest(folders));
  PB_RETURN_IF_ERROR(CheckOutIsFree(folders, manifest));
  Gatherer gatherer(context, folders, manifest);
  PB_ASSIGN_OR_RETURN(Gathered gathered, gatherer.Run());
  PB_RETURN_IF_ERROR(WriteFileDurably(context.allowed, folders.PublishingFile(), {}, 0600));
  PB_RETURN_IF_ERROR(PublishAllCoefficients(context, folders, manifest, gathered.rows));
  const Json document = {
      {"version", kDocumentVersion},          {"definition", manifest.settings.Definition()},
      {"slides", std::move(gathered.slides)}, {"cohort", std::move(gathered.cohort)},
      {"failed", std::move(gathered.failed)}, {"duplicates", std::move(gathered.duplicates)}};
  PB_ASSIGN_OR_RETURN(const std::vector<std::string> plots,
                      PublishSpectra(context, folders, manifest, gathered.sources, document));
  const bool is_whole = gathered.failed_rows.empty();
  PB_ASSIGN_OR_RETURN(std::string result,
                      InlineOrFile(context, folders.out,
                                   DumpJson({{"definition", document["definition"]},
                                             {"cohort", CohortRow(document["cohort"])},
                                             {"slides", std::move(gathered.rows)},
                                             {"failed", std::move(gathered.failed_rows)},
                                             {"duplicates", std::move(gathered.duplicate_rows)},
                                             {"plots", plots}})));
  return Summarised(folders, std::move(result), is_whole);
}

}  // namespace

StatusOr<TaskOutput> RunSpectraSummary(TaskContext& context) {
  return EndSpectraTask(context, Summarise(context));
}

StatusOr<TaskOutput> RunSpectraClean(TaskContext& context) {
  return EndSpectraTask(context, CleanSlideJob(context, "spectra"));
}

}  // namespace patchbay::workers
