// The spectra job: the statistics of a cohort's spectra. spectra.plan (root) expands the sources
// and spawns one spectra.open per image, which spawns the image's strips, its spectra.name and its
// spectra.slide; spectra.summary closes the job. configs/spectra.md defines the output files.
#pragma once

#include "workers/jobs/staged/staged_job.h"
#include "workers/jobs/task/task.h"

namespace patchbay::workers {

/// Payload: SpectraSettings. Manifest: `sources`, `out` and `pseudonym_key`.
/// AlreadyExists when the folder holds something under our names that is not of these sources with
/// these settings. The plan's own result: {"skipped_files"}.
extern const StagedJob kSpectraJob;

/// Payload: {"job_key", "slide"}. Result: {"slide", "strips"}; nothing is spawned for a slide that
/// an earlier run finished and that has not changed since.
StatusOr<TaskOutput> RunSpectraOpen(TaskContext& context);

/// Payload: {"job_key", "slide", "stamp", "rows": [begin, end], "columns": [begin, end], "mask":
/// hash or ""}. Result: StripResult (strip.h).
StatusOr<TaskOutput> RunSpectraStrip(TaskContext& context);

/// Payload: {"job_key", "slide", "stamp"}. Result: {"digest", "id", "origin"} of the slide's file.
StatusOr<TaskOutput> RunSpectraName(TaskContext& context);

/// Payload: {"job_key", "slide", "stamp"}; inputs: the strips' results in order, then
/// spectra.name's. Result: {"slide", "frames"}. DataLoss names the first tile that does not decode,
/// unless such frames are skipped.
StatusOr<TaskOutput> RunSpectraSlide(TaskContext& context);

/// A results::SpectraSummary; publishes all results.
StatusOr<StagedSummary> SummariseSpectra(TaskContext& context);

}  // namespace patchbay::workers
