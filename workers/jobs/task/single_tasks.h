// Ops of jobs that are one task. The result of each is JSON.
#pragma once

#include "workers/jobs/task/task.h"

namespace patchbay::workers {

/// `inspect`: the one of `images`. Result: zarr::ImageReport, or results::VolumesReport of volumes.
StatusOr<TaskOutput> RunInspect(TaskContext& context);

/// `verify`: the one of `images`, payload {"threads": n} (1). Result: {"clean", "shards",
/// "chunks", "stored_bytes", "faults", "bad": [...], "digest", "pixel_digest", "recorded_digest",
/// "recorded_pixel_digest"}. A store with faults is a result, not an error.
StatusOr<TaskOutput> RunVerify(TaskContext& context);

/// `noop`, for measuring dispatch and for tests. Payload {"spawn": n, "result": text, "fail": text,
/// "spin_ms": n}, all optional: spawns n more noops (above 10,000 through noops that spawn that
/// many each), returns the text, fails with FailedPrecondition, works for that long with progress.
StatusOr<TaskOutput> RunNoop(TaskContext& context);

/// `preview.images`: thumbnails. Payload: PreviewOptions. Manifest: `images`, and the PNG file
/// `out`. Result: {"images", "bytes"}. InvalidArgument for more than kMaxPreviewCards images and
/// for one without a level small enough for a thumbnail.
StatusOr<TaskOutput> RunPreviewImages(TaskContext& context);

/// `preview.patches`: patches as a run makes them. Payload: PreviewOptions, and {"plan": text}.
/// Manifest: that of the planned stream, and "out". Result: {"patches", "bytes"}.
StatusOr<TaskOutput> RunPreviewPatches(TaskContext& context);

/// `scan`: a row for every slide, store and CT series. Payload: {"hash": whether contents are
/// hashed}. Manifest: `images` and `pseudonym_key`. Result: results::ScanRows; of a path its
/// volumes (ScanVolumes) stand before its slides.
StatusOr<TaskOutput> RunScan(TaskContext& context);

/// `synth.slide`. Payload: SynthSlideOptions. Manifest: `out`. Result: {"bytes": n}.
StatusOr<TaskOutput> RunSynthSlide(TaskContext& context);

/// `synth.volume`. Payload: SynthVolumeOptions. Manifest: `out`. Result: {}.
StatusOr<TaskOutput> RunSynthVolume(TaskContext& context);

/// `synth.ct`. Payload: SynthCtOptions. Manifest: `out`, a folder, and `lesions`. Result: {"files":
/// n}.
StatusOr<TaskOutput> RunSynthCt(TaskContext& context);

}  // namespace patchbay::workers
