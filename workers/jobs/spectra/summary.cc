// The end of the job: the outcome of every slide, the cohort, and the output files.
#include <algorithm>
#include <map>

#include "runtime/core/strings.h"
#include "runtime/format/json/described.h"
#include "runtime/model/results/spectra_summary.h"
#include "runtime/os/file.h"
#include "runtime/os/folder_listing.h"
#include "workers/jobs/spectra/figures.h"
#include "workers/jobs/spectra/spectra.h"
#include "workers/jobs/spectra/spectra_publish.h"
#include "workers/jobs/spectra/spectra_staging.h"
#include "workers/jobs/task/task.h"

namespace patchbay::workers {
namespace {

/// All results of a job, while they are collected.
struct Gathered {
  results::SpectraDocument document;
  std::vector<SpectraSource> sources;
  results::SpectraSummary summary;  ///< with the slides in the same order
};

/// One slide on its way into the document.
struct Finished {
  results::SpectraSlide figures;
  results::MeasuredSlide row;
};

/// A row of the summary from the figures of the document.
void TakeFigures(const results::SpectraPart& part, results::MeasuredCohort& row) {
  row = {part.frames, part.frames_skipped, part.mean_db, part.std_db, part.focus_db};
}

class Gatherer {
 public:
  Gatherer(TaskContext& context, SpectraTask job)
      : context_(context), task_(std::move(job)), cohort_(WithoutArrays(task_).settings) {
    out_.document.definition = task_.settings.Definition();
  }

  StatusOr<Gathered> Run() {
    const auto count = static_cast<std::int64_t>(task_.manifest.sources.size());
    for (task_.slide = 0; task_.slide < count; ++task_.slide) {
      PB_RETURN_IF_ERROR(AddSlide());
      PB_RETURN_IF_ERROR(StepOf(context_));
    }
    std::vector<results::SpectraSlide>& slides = out_.document.slides;
    for (auto& [id, finished] : finished_) {
      slides.push_back(std::move(finished.figures));
      out_.summary.slides.push_back(std::move(finished.row));
    }
    MarkOutliers(slides);
    std::vector<std::string> outliers;
    for (std::size_t i = 0; i < slides.size(); ++i) {
      results::MeasuredSlide& row = out_.summary.slides[i];
      TakeFigures(slides[i], row);
      row.id = slides[i].id;
      row.outlier = slides[i].outlier;
      row.outlier_reasons = slides[i].outlier_reasons;
      if (row.outlier) outliers.push_back(row.id);
    }
    PB_ASSIGN_OR_RETURN(out_.document.cohort, cohort_.Finish(outliers));
    if (out_.document.cohort) TakeFigures(*out_.document.cohort, out_.summary.cohort.emplace());
    out_.summary.definition = out_.document.definition;
    out_.summary.duplicates = out_.document.duplicates;
    return std::move(out_);
  }

 private:
  /// The arrays of a large cohort are published one by one: all would not fit in memory.
  static SpectraTask& WithoutArrays(SpectraTask& task) {
    task.settings.coefficients = false;
    return task;
  }

  Status AddSlide() {
    const std::int64_t slide = task_.slide;
    auto loaded = LoadSlideSpectra(task_);
    if (!loaded.ok()) {
      AddFailure();
      return absl::OkStatus();
    }
    out_.sources.push_back({loaded->id, loaded->digest});
    if (finished_.contains(loaded->id)) {
      out_.document.duplicates.push_back({slide, loaded->id});
      return absl::OkStatus();
    }
    PB_RETURN_IF_ERROR(cohort_.Add(*loaded));
    Finished& finished = finished_[loaded->id];
    PB_ASSIGN_OR_RETURN(finished.figures, SlideFigures(*loaded, task_.settings));
    const bool adopted = Exists(context_.allowed, task_.AdoptedFile());
    const std::int64_t pixels = loaded->height * loaded->width * loaded->channels;
    finished.row.source_index = slide;
    finished.row.pixel_bytes = adopted ? 0 : static_cast<std::uint64_t>(pixels);
    finished.row.already_there = adopted;
    return absl::OkStatus();
  }

  void AddFailure() {
    const SlideFailure failure = LoadSpectraFailure(task_);
    out_.sources.push_back({failure.id, failure.digest});
    out_.summary.failed.push_back({task_.slide, failure.outcome});
    out_.document.failed.push_back(
        {task_.slide, failure.id.empty() ? std::nullopt : std::optional(failure.id),
         failure.outcome.code == 0 ? "it was not finished" : TextOf(failure.outcome)});
  }

  TaskContext& context_;
  SpectraTask task_;
  CohortFigures cohort_;
  std::map<std::string, Finished> finished_;  ///< by id
  Gathered out_;
};

Status PublishAllCoefficients(TaskContext& context, SpectraTask job,
                              const std::vector<results::MeasuredSlide>& slides) {
  if (!job.settings.coefficients) return absl::OkStatus();
  for (const results::MeasuredSlide& row : slides) {
    job.slide = row.source_index;
    PB_ASSIGN_OR_RETURN(SlideSpectra slide, LoadSlideSpectra(job));
    PB_RETURN_IF_ERROR(PublishCoefficients(context, job, slide));
  }
  return absl::OkStatus();
}

}  // namespace

StatusOr<StagedSummary> SummariseSpectra(TaskContext& context) {
  PB_ASSIGN_OR_RETURN(const SpectraTask job, OpenSpectraJob(context));
  PB_RETURN_IF_ERROR(CheckOutIsFree(job));
  PB_ASSIGN_OR_RETURN(Gathered gathered, Gatherer(context, job).Run());
  PB_RETURN_IF_ERROR(
      WriteFileDurably(context.allowed, job.folders.InJob(kPublishingFile), {}, 0600));
  PB_RETURN_IF_ERROR(PublishAllCoefficients(context, job, gathered.summary.slides));
  results::SpectraSummary& summary = gathered.summary;
  PB_ASSIGN_OR_RETURN(summary.plots,
                      PublishSpectra(context, job, gathered.sources, gathered.document));
  return StagedSummary{JsonOf(summary), summary.failed.empty()};
}

}  // namespace patchbay::workers
