// One slide of an ingest job as its tasks see it.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "runtime/format/zarr/image_store.h"
#include "workers/jobs/ingest/ingest_staging.h"
#include "workers/jobs/ingest/levels.h"
#include "workers/sources/image_source.h"

namespace patchbay::workers {

struct IngestSlide : IngestTask {
  explicit IngestSlide(IngestTask task) : IngestTask(std::move(task)) {}

  std::string path;  ///< canonical, readable under the task's rights
  std::unique_ptr<ImageSource> source;
  std::vector<OutputLevel> levels;
  zarr::ImageStoreSettings store;        ///< how its pixels become zarr shards
  std::vector<tiles::TileFormat> tiles;  ///< the stored levels', where tiles are kept
};

/// Opens the slide named by the payload's "job_key" and "slide", the subject of the task's errors
/// from then on.
StatusOr<IngestSlide> OpenIngestSlide(TaskContext& context);

/// Its levels, store and tiles, by its source and settings. Unimplemented where the settings keep
/// tiles and the source has none to keep.
Status SettleStore(IngestSlide& slide);

/// The pixel sizes of the stored levels, finest first.
std::vector<Extent> StoredSizes(const std::vector<OutputLevel>& levels);

/// Index into `levels` of the stored level with that number.
int LevelOfStored(const std::vector<OutputLevel>& levels, int stored);

/// Every shard of the store: level by level, row-major. The order of tasks, inputs and records.
std::vector<zarr::ShardPlace> ShardPlaces(const IngestSlide& slide);

/// The keys of such a task's payload beside StagePayload: places of ShardPlaces.
struct ShardPayload {
  std::string slide_key;
  std::int64_t first = 0, count = 0;

  static constexpr auto Fields() {
    using T = ShardPayload;
    return AsFullObject(Field("slide_key", &T::slide_key), Field("first", &T::first),
                        Field("count", &T::count));
  }
};

/// Some shards of one slide, as the tasks that make, join and check them are told.
struct ShardRequest {
  IngestSlide slide;
  std::vector<zarr::ShardPlace> places;
};

/// OpenIngestSlide, and the ShardPayload.
StatusOr<ShardRequest> OpenShardRequest(TaskContext& context);

/// Stored levels whose shards are made together: from the pixels of the finest, the others by
/// averaging.
struct LevelColumn {
  int finest = 0;             ///< stored level
  std::vector<Extent> sizes;  ///< sizes of `finest` and the coarser levels, at least one
};

/// The column that stored level `level` belongs to.
LevelColumn ColumnOf(const IngestSlide& slide, int level);

/// The shards of the column's finest level that shard `place` of one of its levels is made from.
std::vector<zarr::ShardPlace> FinestBelow(const IngestSlide& slide, const LevelColumn& column,
                                          const zarr::ShardPlace& place);

/// "0.0.3.1": names a shard's record.
std::string RecordName(const zarr::ShardPlace& place);

/// Whether a stain fit is made of the store's colours: RGB of uint8, read with statistics.
bool HasColours(const IngestSlide& slide);

/// The error of a source that has no tiles that can be kept.
Status CannotKeep(const IngestTask& task, std::string_view cause);

/// The metadata of the slide's store. Only allow-listed fields of the source are copied.
zarr::ImageStoreSpec StoreSpec(const IngestSlide& slide, const Digest& source_digest,
                               std::uint64_t source_bytes);

}  // namespace patchbay::workers
