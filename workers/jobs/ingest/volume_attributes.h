// The attributes that a store of ingested volumes has of them.
#pragma once

#include <string>
#include <vector>

#include "runtime/format/zarr/image_store.h"
#include "workers/jobs/ingest/ingest_staging.h"
#include "workers/jobs/ingest/ingest_volume.h"
#include "workers/jobs/task/task.h"
#include "workers/sources/volumes/volume.h"

namespace patchbay::workers {

/// A volume as it goes into a store, and its origin.
struct ReadChannel {
  const PlannedChannel* planned = nullptr;  ///< outlives it
  std::string source_sha256;
  Volume volume;

  /// Whether its values are Hounsfield units, or may still be by the word of a table.
  bool MayBeHu() const;
};

/// The store of volumes that lie on one grid and are of one type: of the one that there is, or of
/// channels. ResourceExhausted where counting their values takes more memory than there is.
StatusOr<zarr::ImageStoreSpec> VolumeSpecOf(TaskContext& context, const IngestTask& task,
                                            const std::vector<ReadChannel>& channels,
                                            const SlideOutcome& outcome);

}  // namespace patchbay::workers
