// Volumes on their way into stores: one task each that looks at the headers, one that reads,
// writes and publishes.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "runtime/core/fields.h"
#include "runtime/model/source/modality.h"
#include "workers/jobs/ingest/ingest_staging.h"
#include "workers/sources/volumes/find_volumes.h"

namespace patchbay::workers {

/// A source that is a volume, as ingest.plan found it.
struct PlannedVolume {
  VolumeFormat format = VolumeFormat::kNone;
  std::vector<std::string> files;
  std::uint64_t voxel_bytes = 0;
  std::optional<ModalityRecord> modality = {};  ///< absent: as its headers say, or not known
  std::string repair = {};                      ///< ParseRepairs' text: consented to
  std::uint64_t part = 0;                       ///< SeriesRepair::part

  static constexpr auto Fields() {
    using T = PlannedVolume;
    return AsFullObject(Field("format", &T::format), Field("files", &T::files),
                        Field("voxel_bytes", &T::voxel_bytes), Field("modality", &T::modality),
                        Field("repair", &T::repair), Field("part", &T::part));
  }
};

/// Writes to OUT/verdicts.csv why each of these files, by their paths, was left out as a mask.
Status RecordMasks(const StagedFolders& folders, const std::map<std::string, std::string>& masks);

Status SavePlannedVolume(const IngestTask& task, const PlannedVolume& volume);

/// The volume that the task's source is; nullopt for a slide. Its file paths are canonical and
/// readable under the task's rights.
StatusOr<std::optional<PlannedVolume>> PlannedVolumeOf(TaskContext& context,
                                                       const IngestTask& task);

/// ingest.open of a volume: judges it, writes the verdict to OUT/verdicts.csv (owner-only), and
/// spawns its ingest.volume unless the store exists already.
StatusOr<TaskOutput> OpenVolume(TaskContext& context, IngestTask& task,
                                const PlannedVolume& volume);

}  // namespace patchbay::workers
