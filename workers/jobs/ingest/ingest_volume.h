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

/// A volume, as ingest.plan found it.
struct PlannedVolume {
  VolumeFormat format = VolumeFormat::kNone;
  std::vector<std::string> files;
  std::uint64_t voxel_bytes = 0;
  std::optional<ModalityRecord> modality = {};  ///< absent: as its headers say, or not known
  std::string repair = {};                      ///< ParseRepairs' text: consented to
  std::uint64_t part = 0;                       ///< SeriesRepair::part
  std::optional<std::int64_t> number = {};      ///< ReadVolumeOptions::number

  static constexpr auto Fields() {
    using T = PlannedVolume;
    return AsFullObject(Field("format", &T::format), Field("files", &T::files),
                        Field("voxel_bytes", &T::voxel_bytes), Field("modality", &T::modality),
                        Field("repair", &T::repair), Field("part", &T::part),
                        Field("number", &T::number));
  }
};

/// A volume that becomes one channel of a store, or all of it.
struct PlannedChannel : PlannedVolume {
  std::string name = {};    ///< "" of a store of one channel
  std::string source = {};  ///< as the user named it

  static constexpr auto Fields() {
    using T = PlannedChannel;
    return Extending<PlannedVolume>(
        AsFullObject(Field("name", &T::name), Field("source", &T::source)));
  }
};

/// A source that becomes a store: a volume, or several that are channels of one image. Its own
/// facts are then those of the first, its files those of all.
struct PlannedImage : PlannedVolume {
  std::vector<PlannedChannel> channels = {};  ///< none: it is one volume

  static constexpr auto Fields() {
    using T = PlannedImage;
    return Extending<PlannedVolume>(AsFullObject(Field("channels", &T::channels)));
  }
};

/// Writes to OUT/verdicts.csv why each of these files, by their paths, was left out as a mask.
Status RecordMasks(const StagedFolders& folders, const std::map<std::string, std::string>& masks);

Status SavePlannedImage(const IngestTask& task, const PlannedImage& image);

/// The volumes that the task's source is; nullopt for a slide. Its file paths are canonical and
/// readable under the task's rights.
StatusOr<std::optional<PlannedImage>> PlannedImageOf(TaskContext& context, const IngestTask& task);

/// ingest.open of volumes: judges them, writes the verdicts to OUT/verdicts.csv (owner-only), and
/// spawns their ingest.volume unless the store exists already.
StatusOr<TaskOutput> OpenVolume(TaskContext& context, IngestTask& task, const PlannedImage& image);

}  // namespace patchbay::workers
