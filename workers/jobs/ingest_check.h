// Whether the zarr shards in the staging folder are what their tasks committed.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "workers/jobs/ingest_slide.h"

namespace patchbay::workers {

/// Shards that one ingest.check reads: as many as are hashed side by side.
inline constexpr std::size_t kShardsPerCheck = 16;

/// Some shards' records as the staging folder has them.
struct StagedRecords {
  std::vector<zarr::ShardRecord> records;
  std::vector<Digest> texts;        ///< SHA-256 of each record's text: what its task reported
  std::uint64_t absent_pieces = 0;  ///< of level 0

  /// Over `texts`: what a check reports and finalise compares.
  Digest Name() const;
};

/// The records of the places [first, first + kShardsPerCheck), fewer at the end.
StatusOr<StagedRecords> ReadRecords(const IngestSlide& slide, const std::string& slide_key,
                                    const std::vector<zarr::ShardPlace>& places, std::size_t first);

/// Reads every file whole. DataLoss unless it has the size and the SHA-256 of its record.
Status CheckFiles(TaskContext& context, const IngestSlide& slide, const std::string& slide_key,
                  const std::vector<zarr::ShardRecord>& records);

/// Over inode, size, and times of change of the files: while it stays, they were neither written
/// nor replaced. DataLoss when a file is not there or has another size than its record says.
StatusOr<Digest> StampFiles(const IngestSlide& slide, const std::string& slide_key,
                            const std::vector<zarr::ShardRecord>& records);

}  // namespace patchbay::workers
