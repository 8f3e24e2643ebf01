// Checks that the zarr shards in the staging folder are those that their tasks committed.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "ops/stain_normalize/stain_histogram.h"
#include "runtime/format/json/json_forms.h"
#include "workers/jobs/ingest/ingest_slide.h"

namespace patchbay::workers {

/// The most shards that one ingest.check reads: as many as are hashed in parallel lanes.
inline constexpr std::size_t kShardsPerCheck = 16;

/// The record beside a committed shard, from which finalise learns what the shard holds.
struct RecordText {
  zarr::ShardRecord shard;
  std::uint64_t absent_pieces = 0;
  std::optional<Digest> colours;  ///< digest of the file with the colour histogram, if any

  static constexpr auto Fields() {
    using T = RecordText;
    return AsFullObject(Field("shard", &T::shard), Field("absent_pieces", &T::absent_pieces),
                        Field("colours", &T::colours));
  }
};

/// A committed shard as its check reports it, after it has read the file whole.
struct CheckedShard {
  Digest record;  ///< SHA-256 of the record's text, which holds the file's
  /// Inode and times of change of the file, taken before it was read; "unsettled", which no file
  /// has, while they are so young that a write could leave them as they are.
  std::string stamp;

  bool operator==(const CheckedShard&) const = default;
  static constexpr auto Fields() {
    return AsFullObject(Field("record", &CheckedShard::record),
                        Field("stamp", &CheckedShard::stamp));
  }
};

/// The result of an ingest.check task: its shards, in the order of ShardPlaces.
struct CheckedShards {
  std::vector<CheckedShard> shards;

  static constexpr auto Fields() { return AsFullObject(Field("shards", &CheckedShards::shards)); }
};

/// The result of a task that made shards: the SHA-256 of each record's text.
struct MadeShards {
  std::vector<Digest> records;

  static constexpr auto Fields() { return AsFullObject(Field("records", &MadeShards::records)); }
};

/// Adopts the shard that an earlier lease committed, if its file, read whole, still matches its
/// record. Returns the SHA-256 of the record's text.
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
  std::uint64_t absent_pieces = 0;  ///< pieces of level 0
};

/// Compares every record with its check's report, and every file with its stamp; files with another
/// stamp are read whole again. DataLoss names the first shard that differs from the committed one.
StatusOr<StagedShards> ConfirmShards(TaskContext& context, const IngestSlide& slide,
                                     const std::vector<CheckedShard>& checked);

}  // namespace patchbay::workers
