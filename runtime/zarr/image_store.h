// Writing an image as OME-Zarr (NGFF 0.5, Zarr v3, sharded) in pieces: every zarr shard is made by
// whichever process holds its task, and the metadata is written last. Everything here is
// deterministic: the same pixels and settings give the same bytes on every machine.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/base/dtype.h"
#include "runtime/base/hash.h"
#include "runtime/base/json.h"
#include "runtime/base/status.h"
#include "runtime/base/tensor_view.h"

namespace patchbay::zarr {

enum class StoreCodec : std::uint8_t { kBloscZstd, kBloscLz4, kZstd };

/// "zstd" (Blosc around zstd), "lz4" (Blosc around lz4), "plain-zstd".
std::string_view NameOf(StoreCodec codec);
StatusOr<StoreCodec> StoreCodecFromName(std::string_view name);

/// How pixels become zarr shards. Part of what names the result: two ingests with equal settings
/// make equal stores.
struct ImageStoreSettings {
  DType dtype = DType::kUint8;  ///< kUint8 or kUint16
  int channels = 3;
  /// Side of an inner chunk in pixels. Larger means better compression and more bytes decoded for a
  /// small crop.
  std::int64_t chunk_px = 512;
  /// Side of a zarr shard in pixels, a multiple of chunk_px. Larger means fewer files and longer
  /// tasks.
  std::int64_t shard_px = 4096;
  StoreCodec codec = StoreCodec::kBloscZstd;
  int codec_level = 5;  ///< 1..9 inside Blosc, 1..22 for plain zstd
  std::uint32_t blosc_block_bytes = 131072;
  /// Value of background. An inner chunk in which every element equals it is not stored.
  std::uint16_t fill_value = 255;
};

/// InvalidArgument naming the setting and its range.
Status Validate(const ImageStoreSettings& settings);
Json ToJson(const ImageStoreSettings& settings);
StatusOr<ImageStoreSettings> ImageStoreSettingsFromJson(const Json& value);

/// Size of one level in pixels.
struct LevelSize {
  std::int64_t height = 0, width = 0;
  bool operator==(const LevelSize&) const = default;
};

/// One zarr shard: its level and place in that level's shard grid.
struct ShardPlace {
  int level = 0;
  std::int64_t row = 0, column = 0;
  bool operator==(const ShardPlace&) const = default;
};

/// Shards down and across a level.
LevelSize ShardGridOf(const ImageStoreSettings& settings, const LevelSize& level);
/// Inner chunks down and across a level.
LevelSize ChunkGridOf(const ImageStoreSettings& settings, const LevelSize& level);
/// "0/c/0/3/1": the shard's file below the store's folder.
std::string ShardFileName(const ShardPlace& place);

/// Gives the pixels of inner chunk (row, column) of the level's chunk grid. `out` has shape
/// (height, width, channels) clipped to the image, interleaved, rows at any distance; every element
/// of it must be written. Called once per chunk that meets the image, in row-major order within the
/// shard, from the calling thread.
using ChunkPixels =
    std::function<Status(std::int64_t row, std::int64_t column, const TensorView& out)>;

/// What finalise needs to know about a shard, without its bytes.
struct ShardRecord {
  ShardPlace place;
  std::uint64_t size_bytes = 0;  ///< 0: every chunk is background, there is no file
  Digest digest;                 ///< SHA-256 of the file; all zero when there is none
  std::vector<Digest>
      chunk_pixels;  ///< per inner chunk that meets the image, row-major in the shard
  bool operator==(const ShardRecord&) const = default;
};

Json ToJson(const ShardRecord& record);
StatusOr<ShardRecord> ShardRecordFromJson(const Json& value);

struct EncodedShard {
  ShardRecord record;
  std::vector<std::byte> bytes;  ///< empty when record.size_bytes is 0
};

/// Pure and single-threaded: same pixels, same bytes. Holds a row of raw chunks and the encoded
/// shard in memory. Errors of `pixels` pass through. shard_encoder.h does the same by rows, and
/// coarser levels with it.
StatusOr<EncodedShard> EncodeShard(const ImageStoreSettings& settings, const LevelSize& level,
                                   const ShardPlace& place, const ChunkPixels& pixels);

/// Writes the shard's file below `store` durably (temporary name, fsync, rename, fsync of the
/// folder), making folders as needed; nothing for a shard without bytes. Idempotent: a file that is
/// there is replaced.
Status WriteShardFile(const std::string& store, const EncodedShard& shard);

/// The zarr shards of one level as files.
struct LevelFiles {
  /// The level's node in the byte root.
  Digest digest;
  /// Row-major over the level's shard grid: the first 32 bits of the file's SHA-256, or nothing
  /// where every chunk is background and there is no file.
  std::vector<std::optional<std::uint32_t>> shards;
  bool operator==(const LevelFiles&) const = default;
};

/// Digests that name a store: over the bytes of its files, and over its decoded pixels.
struct StoreRoots {
  Digest bytes;
  Digest pixels;
  /// What the metadata says of the files of every level (the byte root covers it); empty where it
  /// says nothing.
  std::vector<LevelFiles> levels;
  bool operator==(const StoreRoots&) const = default;
};

/// Everything the metadata says.
struct ImageStoreSpec {
  ImageStoreSettings settings;
  std::vector<LevelSize> levels;       ///< finest first
  std::optional<double> mpp_y, mpp_x;  ///< micrometres per pixel of level 0
  /// attributes.patchbay as the caller gives it. Only the keys of AllowedAttributes() pass; its
  /// member "identity" (an object: pseudonym, name) does not enter the roots.
  Json attributes = Json::object();
};

/// The keys that may appear in attributes.patchbay, besides digest, pixel_digest and shards, which
/// WriteStoreMetadata adds.
const std::vector<std::string>& AllowedAttributes();

/// Joins the records of all shards of all levels, in any order. InvalidArgument naming the first
/// shard that is missing, twice there, or of the wrong size.
StatusOr<StoreRoots> CombineRoots(const ImageStoreSpec& spec,
                                  const std::vector<ShardRecord>& records);

/// Writes zarr.json of the root group and of every level array below `store`, durably, with the
/// roots and the list of shard files in attributes.patchbay. Written last: a store without a root
/// zarr.json is not a store.
Status WriteStoreMetadata(const std::string& store, const ImageStoreSpec& spec,
                          const StoreRoots& roots);
/// The same, durable only once PublishStore has synced the store.
Status DraftStoreMetadata(const std::string& store, const ImageStoreSpec& spec,
                          const StoreRoots& roots);

}  // namespace patchbay::zarr
