// Writes an image as OME-Zarr (NGFF 0.5, Zarr v3, sharded) in pieces: the process that holds a zarr
// shard's task makes the shard, and the metadata is written last. Everything here is deterministic:
// the same pixels and settings give the same bytes on every machine.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/core/extent.h"
#include "runtime/core/fields.h"
#include "runtime/core/hash.h"
#include "runtime/core/spacing.h"
#include "runtime/core/status.h"
#include "runtime/core/tensor_view.h"
#include "runtime/format/json/json.h"
#include "runtime/format/tiles/tile_format.h"
#include "runtime/format/zarr/codec/image_settings.h"  // wide: pixels, metadata, digests and rights meet where a store is written
#include "runtime/os/folders.h"

namespace patchbay::zarr {

/// Largest side of a level, in pixels.
inline constexpr std::int64_t kMaxLevelSide = std::int64_t{1} << 31;

/// One zarr shard: its level and place in that level's shard grid.
struct ShardPlace {
  int level = 0;
  Point at;
  int channel = -1;  ///< a volume's, of several; -1: the shard has all that there are
  bool operator==(const ShardPlace&) const = default;
  static constexpr auto Fields() {
    return AsObject(Field("level", &ShardPlace::level).Required(),
                    Field("at", &ShardPlace::at).Required(),
                    Field("channel", &ShardPlace::channel));
  }
  /// "3/0/1", or "2/3/0/1" of a channel: the shard's coordinates in its array.
  std::string Coordinates() const;
  /// The first of its channel among the cells of a level, channel after channel, where `grid` is
  /// that of one channel.
  std::size_t ChannelBegin(const Extent& grid) const {
    return static_cast<std::size_t>(channel < 0 ? 0 : channel * grid.Pixels());
  }
};

/// Shards of a level along each axis, of one channel where each has its own.
Extent ShardGridOf(const ImageStoreSettings& settings, const Extent& level);
/// Inner chunks of a level along each axis.
Extent ChunkGridOf(const ImageStoreSettings& settings, const Extent& level);
/// Inner chunks of a level, of all channels.
std::size_t ChunksOfLevel(const ImageStoreSettings& settings, const Extent& level);
/// All zarr shards of a level, channel after channel, row-major.
std::vector<ShardPlace> PlacesOf(const ImageStoreSettings& settings, int level, const Extent& size);
/// "0/c/0/3/1": the shard's file below the store's folder. A 2-D image's first index is that of
/// its channels, a volume's that of its slices, that of its channel before it where it has several.
std::string ShardFileName(const ShardPlace& place);

/// Gives the pixels of an inner chunk of the level's chunk grid. `out` has shape (depth, height,
/// width, channels) clipped to the image, interleaved, rows at any distance; every element of it
/// must be written. Called once per chunk that meets the image, in row-major order within the
/// shard, from the calling thread.
using ChunkPixels = std::function<Status(const Point& chunk, const TensorView& out)>;

/// Facts on a shard that finalise needs, without its bytes.
struct ShardRecord {
  ShardPlace place;
  std::uint64_t size_bytes = 0;  ///< 0: every chunk is background, there is no file
  Digest digest;                 ///< SHA-256 of the file; all zero when there is none
  /// Per inner chunk that overlaps the image, row-major in the shard.
  std::vector<Digest> chunk_pixels;
  bool operator==(const ShardRecord&) const = default;
  static constexpr auto Fields() {
    using T = ShardRecord;
    return AsFullObject(Field("place", &T::place), Field("size_bytes", &T::size_bytes),
                        Field("digest", &T::digest),
                        Field("chunk_pixels", &T::chunk_pixels).Counted(0, 1u << 20));
  }
};

/// A zarr shard as it goes into its file, and the record that metadata keeps of it.
struct EncodedShard {
  ShardRecord record;
  std::vector<std::byte> bytes;  ///< empty when record.size_bytes is 0
};

/// Pure and single-threaded: same pixels, same bytes. Holds a row of raw chunks and the encoded
/// shard in memory. Errors of `pixels` pass through. shard_encoder.h does the same by rows, and
/// coarser levels with it.
StatusOr<EncodedShard> EncodeShard(const ImageStoreSettings& settings, const Extent& level,
                                   const ShardPlace& place, const ChunkPixels& pixels);

/// Writes the shard's file below `store` durably (temporary name, fsync, rename, fsync of the
/// folder), making folders as needed; nothing for a shard without bytes. Idempotent: an existing
/// file is replaced.
Status WriteShardFile(const Folders& allowed, const std::string& store, const EncodedShard& shard);

/// The seal that binds a shard's file to its place: the first 32 bits of a hash over the pixel
/// digests of its chunks. The file holds them (most significant byte first) between its last chunk
/// and its index, a gap to other readers; the store's metadata lists them.
std::uint32_t SealOf(const std::vector<Digest>& chunk_pixels);
inline constexpr std::size_t kSealBytes = 4;

/// A zarr shard that has a file.
struct ListedShard {
  std::uint32_t first_bits = 0;  ///< first bits of the file's SHA-256
  std::uint32_t seal = 0;
  bool operator==(const ListedShard&) const = default;
};

/// The zarr shards of one level as files.
struct LevelFiles {
  /// The level's node in the byte root.
  Digest digest;
  /// Row-major over the level's shard grid; nothing where every chunk is background and there is no
  /// file.
  std::vector<std::optional<ListedShard>> shards;
  bool operator==(const LevelFiles&) const = default;
};

/// Digests that name a store: over the bytes of its files, and over its decoded pixels.
struct StoreRoots {
  Digest bytes;
  Digest pixels;
  /// The metadata's list of the files of every level (the byte root covers it); empty where it has
  /// none.
  std::vector<LevelFiles> levels;
  bool operator==(const StoreRoots&) const = default;
};

/// The content of a store's metadata.
struct ImageStoreSpec {
  ImageStoreSettings settings;
  std::vector<Extent> levels;  ///< finest first
  /// The tiles of every level under kKeep.
  std::vector<tiles::TileFormat> tiles;
  /// Downsamples (y, x) of every level of a 2-D image; empty: the ratios of their shapes. A
  /// level that was averaged has pixels of exactly twice its parent's size, although its shape is
  /// rounded up. Levels of a volume are halves, one after another.
  std::vector<std::array<double, 2>> downsamples;
  Spacing spacing;  ///< spacing of level 0
  std::vector<std::string> channel_names =
      {};  ///< omero's labels; empty: red, green, blue, or numbered
  /// attributes.patchbay as the caller gives it. Only the keys of AllowedAttributes() pass; its
  /// member "identity" (an object: pseudonym, name) does not enter the roots.
  Json attributes = Json::object();
  /// NGFF's "image-label" of a label image; null: an image.
  Json image_label;
};

/// The key of attributes.patchbay that says kTilesThemselves where pixels were not decoded: the
/// pixel digest and its seals are then over the SHA-256 of the tiles' bytes.
inline constexpr char kPixelDigestOf[] = "pixel_digest_of", kTilesThemselves[] = "tiles";

/// The keys that may appear in attributes.patchbay, besides digest, pixel_digest and shards, which
/// WriteStoreMetadata adds.
const std::vector<std::string>& AllowedAttributes();

/// Joins the records of all shards of all levels, in any order. InvalidArgument naming the first
/// shard that is missing, repeated, or of the wrong size.
StatusOr<StoreRoots> CombineRoots(const ImageStoreSpec& spec,
                                  const std::vector<ShardRecord>& records);

/// Writes zarr.json of the root group and of every level array below `store`, durably, with the
/// roots and the list of shard files in attributes.patchbay. Written last: a store without a root
/// zarr.json is not a store.
Status WriteStoreMetadata(const Folders& allowed, const std::string& store,
                          const ImageStoreSpec& spec, const StoreRoots& roots);
/// WriteStoreMetadata without fsync: durable only once PublishStore has synced the store.
Status DraftStoreMetadata(const Folders& allowed, const std::string& store,
                          const ImageStoreSpec& spec, const StoreRoots& roots);

}  // namespace patchbay::zarr
