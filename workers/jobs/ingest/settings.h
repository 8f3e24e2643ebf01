// What `patchbay ingest` was asked to write: part of a staging folder's name, so that a killed
// ingest is adopted only by one that would have written the same bytes.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>

#include "runtime/core/status.h"
#include "runtime/format/json/json.h"

namespace patchbay::workers {

/// Of 32, 48, 64 and 96 the smallest store and the fastest random 96^3 reads
/// (tests/bench/volume_chunks.py).
inline constexpr std::int64_t kVolumeChunk = 32;

struct IngestSettings {
  std::int64_t chunk = 512;  ///< inner chunk edge, pixels; larger means fewer, larger reads
  std::int64_t shard =
      4096;  ///< zarr shard edge, pixels; a multiple of chunk; larger means fewer files
  std::string codec = "zstd";    ///< "zstd" or "lz4", inside Blosc
  std::int64_t codec_level = 5;  ///< 1..9; larger means smaller and slower to write
  std::optional<double>
      mpp;  ///< start the pyramid at this many micrometres per pixel; absent = the source's finest
  /// Micrometres per pixel of the finest level of slides that do not state them; others keep
  /// theirs.
  std::optional<double> assume_mpp;
  /// Inner chunk edge of a volume, voxels; larger means fewer, larger reads. Its zarr shards are
  /// the multiple of it nearest to 256.
  std::int64_t volume_chunk = kVolumeChunk;
  /// "refuse", "resample" or "accept": what happens to a volume whose slices are not equally
  /// spaced.
  std::string geometry = "refuse";
  std::string orientation = "canonical";  ///< or "source": axes of a volume as its file has them
  /// Volumes are resampled to this spacing, millimetres along z, y, x; absent = as they are.
  std::optional<std::array<double, 3>> spacing;
  std::int64_t spacing_order = 3;  ///< 0 nearest, 1 linear, 3 cubic B-spline
  /// In place of NaN and infinity in a volume; absent = such a volume is refused.
  std::optional<double> nan;
  bool keep_names = false;  ///< name stores after their files instead of by pseudonym
  /// Profile by which stores of slides get a set of tissue ("clam", "tiatoolbox", "histolab"); ""
  /// for none.
  std::string tissue;

  /// Canonical JSON of all that decides bytes (keep_names and tissue do not).
  std::string Canonical() const;
};

/// Reads the payload of the root task. InvalidArgument names the key and its range; unknown keys
/// are refused.
StatusOr<IngestSettings> ParseIngestSettings(const Json& payload);
Json ToJson(const IngestSettings& settings);

}  // namespace patchbay::workers
