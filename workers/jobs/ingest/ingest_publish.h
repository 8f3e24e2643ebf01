// The last steps of a slide or volume, and recognising that they were taken before.
#pragma once

#include <cstdint>
#include <string>

#include "runtime/format/zarr/image_store.h"
#include "workers/jobs/ingest/ingest_staging.h"
#include "workers/jobs/task/task.h"

namespace patchbay::workers {

/// True when OUT/name is a finished store of outcome.source_sha256 and the job's settings: then
/// `outcome` gets its digests, sizes and name. False when nothing has that name. AlreadyExists when
/// the name belongs to something else, DataLoss when a level or a listed file is missing or is no
/// file: the store is never changed. Only names are checked; `patchbay verify` checks bytes.
StatusOr<bool> AdoptFinishedStore(TaskContext& context, const IngestTask& task,
                                  const std::string& name, SlideOutcome& outcome);

/// The outcome of a source before anything is made of it, saved, and the task's slide_key with it.
/// `there`: its store OUT/name is finished already.
struct OpenedSource {
  SlideOutcome outcome;
  bool there = false;
};
StatusOr<OpenedSource> OpenSource(TaskContext& context, IngestTask& task, const std::string& name,
                                  const Digest& source, std::uint64_t source_bytes);

/// A store whose shards and metadata are written.
struct CompleteStore {
  std::string path;
  const zarr::ImageStoreSpec& spec;
  zarr::StoreRoots roots;
};

/// Renames the store to OUT/name, durably, and records it in `outcome`. The caller holds the
/// staging lock.
Status PublishStaged(TaskContext& context, const IngestTask& task, const CompleteStore& store,
                     const std::string& name, SlideOutcome& outcome);

/// Ends a source whose store is published: saves the outcome, removes the staging folder, returns
/// the outcome as the task's result.
StatusOr<TaskOutput> EndSource(TaskContext& context, const IngestTask& task,
                               const SlideOutcome& outcome);

/// For a task of a slide that failed: OK when another slide of this or another job, with the same
/// content and settings, has published the store meanwhile and with that taken the staging folder
/// away. Then there is nothing left to do, and the output is {"published": store}. Otherwise `why`.
StatusOr<TaskOutput> UnlessPublished(TaskContext& context, const Status& why);

/// Whether the job must find tissue and OUT/store has no set of that name yet: an existing set is
/// kept, since it may be a mask from elsewhere.
bool LacksTissue(const IngestTask& task, const std::string& store);

/// Spawns the task for a finished store that lacks the set.
void AddTissueTask(const IngestTask& task, const std::string& store, TaskOutput& output);

}  // namespace patchbay::workers
