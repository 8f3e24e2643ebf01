// The settings of `patchbay ingest`: its flags, and the payload of its root task.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "runtime/model/jobs/option.h"
#include "runtime/model/source/slide_choice.h"

namespace patchbay {

/// Smallest store and fastest random 96^3 reads among 32, 48, 64 and 96
/// (tests/bench/volume_chunks.py).
inline constexpr std::int64_t kVolumeChunk = 32;

/// In place of a codec: the best by measurements (codec_choice.h). In no payload of a job.
inline constexpr char kAutoCodec[] = "auto";
/// Passes that it plans for where none are stated.
inline constexpr std::int64_t kUsualEpochs = 10;

/// Settings are part of a staging folder's name: a killed ingest is adopted only by one that would
/// have written the same bytes.
struct IngestSettings {
  std::int64_t chunk = 512;   ///< inner chunk edge, pixels; larger means fewer, larger reads
  std::int64_t shard = 4096;  ///< zarr shard edge, pixels; larger means fewer files
  /// "zstd" or "lz4", inside Blosc; "keep": the slide's tiles; kAutoCodec: the command settles it.
  std::string codec = "zstd";
  std::optional<std::int64_t> epochs;  ///< passes that kAutoCodec plans for
  std::int64_t codec_level = 5;        ///< larger means smaller and slower to write
  std::optional<double> mpp;           ///< um per pixel that the pyramid starts at
  std::optional<double> assume_mpp;  ///< um per pixel of the finest level of slides that state none
  /// Inner chunk edge of a volume, voxels; larger means fewer, larger reads. Its zarr shards are
  /// the multiple of it nearest to 256.
  std::int64_t volume_chunk = kVolumeChunk;
  std::string geometry = "refuse";        ///< treatment of slices that are not equally spaced
  std::string orientation = "canonical";  ///< or "source": axes of a volume as its file has them
  std::optional<AxisNumbers> spacing;     ///< mm along z, y, x that volumes are resampled to
  std::int64_t spacing_order = 3;         ///< 0 nearest, 1 linear, 3 cubic B-spline
  std::string anisotropic = "together";   ///< or "separate_z": nnU-Net's rule for coarse axes
  std::string repair;                     ///< ParseRepairs' text: rules that are consented to
  std::string modality;                   ///< volumes' whose table has none; "": the source's
  std::optional<double> nan;    ///< in place of NaN and infinity; absent = such volumes are refused
  bool no_statistics = false;   ///< nothing of kept tiles is decoded
  bool self_contained = false;  ///< kept tiles of JPEG have the slide's tables inside
  std::string tissue;           ///< profile by which slides get a set of tissue; "" for none
  bool keep_names = false;      ///< name stores after their files instead of by pseudonym
  SlideChoice choice;           ///< no option: a slide's, from its row of a table

  /// The table of options, bound to this value.
  std::vector<Option> Options();
  bool KeepsTiles() const { return codec == "keep"; }
  /// InvalidArgument where options contradict each other.
  Status Check() const;
  /// Canonical JSON of all that decides pixels (keep_names, tissue and modality do not;
  /// repairs stand in the store's log).
  std::string Canonical() const;
};

/// Key beside the settings in the payload of the root task: the places in the manifest's sources
/// of rows that state their own repairs, by ParseRepairs' text.
inline constexpr char kRepairsOfRows[] = "repairs";

/// The payload of the root task, which ReadPayload takes.
Json ToJson(const IngestSettings& settings);

}  // namespace patchbay
