// Whether the zarr shards in the staging folder are what their tasks committed.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "workers/jobs/ingest_slide.h"

namespace patchbay::workers {

/// A committed shard as its task reports it: what finalise holds the staging folder against.
struct CommittedShard {
  Digest record;      ///< SHA-256 of the record's text
  std::string stamp;  ///< of the file, taken when its content was known to be the record's
};

Json ToJson(const CommittedShard& shard);
StatusOr<CommittedShard> CommittedShardFromJson(const Json& value);

/// Inode and times of change of a shard's file: while it stays, the file was neither written nor
/// replaced. "none" for a record without a file; DataLoss when the file has another size than the
/// record says.
StatusOr<std::string> StampOf(const std::string& path, const zarr::ShardRecord& record);
/// The stamp of a file that was renamed, if that is all that happened to it since `before`; else
/// "unknown", which no file has.
std::string StampAfterRename(const std::string& before, const std::string& after);

/// The shard that an earlier lease committed, if its file, read whole, still is what its record
/// says.
StatusOr<std::optional<CommittedShard>> AdoptShard(TaskContext& context, const IngestSlide& slide,
                                                   const std::string& slide_key,
                                                   const zarr::ShardPlace& place);

/// The staging folder's records of all shards, in ShardPlaces order.
struct CheckedShards {
  std::vector<zarr::ShardRecord> records;
  std::uint64_t absent_pieces = 0;  ///< of level 0
};

/// Holds every record against what its task reported, and every file against its stamp; files
/// whose stamp is another are read whole. DataLoss naming the first that is not what was committed.
StatusOr<CheckedShards> CheckShards(TaskContext& context, const IngestSlide& slide,
                                    const std::string& slide_key,
                                    const std::vector<CommittedShard>& committed);

}  // namespace patchbay::workers
