// The ops of `patchbay labels`: annotations become label images below the stores they belong to.
#pragma once

#include "workers/jobs/staged/staged_job.h"
#include "workers/jobs/task/task.h"

namespace patchbay::workers {

/// Imports the manifest's label_rows. Payload: LabelsPayload with the keys of LabelsImportOptions,
/// where tissue is looked for of LabelsTissueOptions, of readers of LabelsMajorityOptions. Spawns
/// "labels.import" of each row, in a group of its own (row + 1).
extern const StagedJob kLabelsJob;

/// One annotation file, the tissue of the slide, or the majority of its sets, into one store. An
/// ingest spawns it for the tissue of a store of its own. Result: a report of
/// results/label_reports.h. Locks the store's labels folder while it works; the store does not
/// change until the new revision is durable and current.
StatusOr<TaskOutput> RunLabelsImport(TaskContext& context);

/// How the manifest's one store, among `images`, has the classes of several sets. Payload:
/// LabelsCompareOptions and "sets". Result: results::StoreAgreement.
StatusOr<TaskOutput> RunLabelsCompare(TaskContext& context);

/// The current revision of a set as a file of another program's format. Manifest: the store among
/// `images`, `out`, and for a format that needs it the series among `sources`; payload:
/// LabelsExportOptions, with a format. Result: {"content", "bytes", "digest", ...} (the format's
/// writer). The file appears whole or not at all.
StatusOr<TaskOutput> RunLabelsExport(TaskContext& context);

/// Removes revisions that are not current, or lists them (dry_run), from the manifest's `images`,
/// but for those that are `kept`. Payload: LabelsPruneOptions. Result: a list of
/// PrunedStore. Locks each store's labels folder meanwhile.
StatusOr<TaskOutput> RunLabelsPrune(TaskContext& context);
/// The same for all revisions of one set, which leaves the store's list. Payload:
/// LabelsDeleteOptions.
StatusOr<TaskOutput> RunLabelsDelete(TaskContext& context);

}  // namespace patchbay::workers
