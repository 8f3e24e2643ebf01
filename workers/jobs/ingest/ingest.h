// The ingest job: slides become stores. ingest.plan (root) expands the sources and spawns one
// ingest.open a slide; that spawns an ingest.shard or ingest.join for every zarr shard, an
// ingest.check for every few of them and the slide's ingest.finalise; ingest.summary closes the
// job.
#pragma once

#include "workers/jobs/staged/staged_job.h"
#include "workers/jobs/task/task.h"

namespace patchbay::workers {

/// Payload: IngestSettings. Manifest: `sources`, `out` and the keys.
/// The plan's own results: {"estimated_bytes", "free_bytes", "skipped_files"}.
extern const StagedJob kIngestJob;

/// The costs of all codecs for a job before it is submitted: the measurements for `auto`. Payload
/// and manifest: those of the plan. Result: CodecMeasures. Changes nothing.
StatusOr<TaskOutput> RunIngestMeasure(TaskContext& context);

/// Payload: {"job_key", "slide"}. Result: {"slide", "levels", "shards"}; spawns nothing for a slide
/// whose store exists with the same source and settings.
StatusOr<TaskOutput> RunIngestOpen(TaskContext& context);

/// Payload: {"job_key", "slide", "slide_key", "first", "count"}: places of ShardPlaces. Result:
/// {"records": SHA-256 of each committed record's text}.
StatusOr<TaskOutput> RunIngestShard(TaskContext& context);

/// Like ingest.shard, for shards whose chunks were encoded together with a finer level.
StatusOr<TaskOutput> RunIngestJoin(TaskContext& context);

/// Payload as of ingest.shard; inputs: the results that name these shards, in their order. Reads
/// their files back. Result: {"shards": a CheckedShard (check.h) each}.
StatusOr<TaskOutput> RunIngestCheck(TaskContext& context);

/// Payload: {"job_key", "slide", "slide_key"}; inputs: the results of all checks, in ShardPlaces
/// order. Result: a results::IngestedStore.
StatusOr<TaskOutput> RunIngestFinalise(TaskContext& context);

/// Ingests a whole volume; ingest.open spawns it instead of the tasks of shards. Payload:
/// {"job_key", "slide", "slide_key"}. Result: as of ingest.finalise.
StatusOr<TaskOutput> RunIngestVolume(TaskContext& context);

/// A results::IngestSummary; merges OUT/manifest.csv.
StatusOr<StagedSummary> SummariseIngest(TaskContext& context);

}  // namespace patchbay::workers
