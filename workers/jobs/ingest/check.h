// Whether the zarr shards in the staging folder are what their tasks committed.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "ops/stain_normalize/stain_histogram.h"
#include "runtime/format/json/json_forms.h"
#include "workers/jobs/ingest/slide.h"

namespace patchbay::workers {

/// Shards that one ingest.check reads, at most: as many as are hashed side by side.
inline constexpr std::size_t kShardsPerCheck = 16;

/// A committed shard as its check reports it, after it has read the file whole.
struct CheckedShard {
  Digest record;  ///< SHA-256 of the record's text, which holds the file's
  /// Inode and times of change of the file, taken before it was read; "unsettled", which no file
  /// has, while they are so young that a write could leave them as they are.
  std::string stamp;

  bool operator==(const CheckedShard&) const = default;
  static constexpr auto Fields() {
    return AsObject(Field("record", &CheckedShard::record).Required(),
                    Field("stamp", &CheckedShard::stamp).Required());
  }
};

/// The result of an ingest.check task: its shards, in the order of ShardPlaces.
struct CheckedShards {
  std::vector<CheckedShard> shards;

  static constexpr auto Fields() {
    return AsObject(Field("shards", &CheckedShards::shards).Required());
  }
};

/// The result of a task that made shards: the SHA-256 of each record's text.
struct MadeShards {
  std::vector<Digest> records;

  static constexpr auto Fields() {
    return AsObject(Field("records", &MadeShards::records).Required());
  }
};

/// The shard that an earlier lease committed, if its file, read whole, still is what its record
/// says. Returns the SHA-256 of the record's text.
StatusOr<std::optional<Digest>> AdoptShard(TaskContext& context, const IngestSlide& slide,
                                           const zarr::ShardPlace& place);

/// The colour histogram of a committed shard of the finest level, checked against the digest in its
/// record; nullopt for shards of other levels. DataLoss when the file has changed since it was
/// committed.
StatusOr<std::optional<ops::StainHistogram>> ReadColours(const IngestSlide& slide,
                                                         const zarr::ShardPlace& place);

/// The staging folder's records of all shards, in ShardPlaces order.
struct StagedShards {
  std::vector<zarr::ShardRecord> records;
  std::uint64_t absent_pieces = 0;  ///< of level 0
};

/// Holds every record against what its check reported, and every file against its stamp; files
/// whose stamp is another are read whole again. DataLoss naming the first that is not what was
/// committed.
StatusOr<StagedShards> ConfirmShards(TaskContext& context, const IngestSlide& slide,
                                     const std::vector<CheckedShard>& checked);

}  // namespace patchbay::workers
