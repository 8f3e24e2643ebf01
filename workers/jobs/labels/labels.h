// The ops of `patchbay labels`: annotations become label images below the stores they belong to.
#pragma once

#include "workers/jobs/staged/staged_job.h"
#include "workers/jobs/task/task.h"

namespace patchbay::workers {

/// Imports. Manifest: {"images": [stores], "sources": [files], one each}; payload:
/// {"set", "classes" (canonical), "sites": [one each], "dry_run"}. Without "sources", and with the
/// payload {"set", "profile"}, tissue is looked for instead. Spawns "labels.import" of each
/// row, in a group of its own (row + 1). Result: {"rows"}.
extern const StagedJob kLabelsJob;

/// One annotation file, or the tissue of the slide, into one store: the payload above and {"row"}.
/// An ingest spawns it for the tissue of a store: then the payload has {"store" (its name in the
/// manifest's "out"), "slide"}. Result: its contents (see ImportReport). Locks the store's labels
/// folder while it works; the store does not change until the new revision is durable and current.
StatusOr<TaskOutput> RunLabelsImport(TaskContext& context);

/// The current revision of a set as a file of another program's format. Manifest: {"images":
/// [store], "out": file}; payload: LabelsExportOptions, with a format. Result: {"content", "bytes",
/// "digest", ...} (the format's writer). The file appears whole or not at all.
StatusOr<TaskOutput> RunLabelsExport(TaskContext& context);

/// Removes revisions that are not current, or lists them (dry_run). Manifest: {"images": [stores],
/// "kept": [revisions that stay]}; payload: {"set" ("" = all), "dry_run"}. Result: {"stores":
/// [{"store", "removed", "kept", "bytes"}]}. Locks each store's labels folder meanwhile.
StatusOr<TaskOutput> RunLabelsPrune(TaskContext& context);

}  // namespace patchbay::workers
