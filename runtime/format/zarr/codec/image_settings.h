// How a store's pixels are cut and compressed, as plain values.
#pragma once

#include <cstdint>
#include <string_view>

#include "runtime/core/dtype.h"
#include "runtime/core/extent.h"
#include "runtime/core/status.h"

namespace patchbay::zarr {

/// kKeep: chunks are the tiles of a slide as its file has them; nothing is encoded.
enum class StoreCodec : std::uint8_t { kBloscZstd, kBloscLz4, kZstd, kKeep };

/// "zstd" (Blosc around zstd), "lz4" (Blosc around lz4), "plain-zstd", "keep".
std::string_view NameOf(StoreCodec codec);
StatusOr<StoreCodec> StoreCodecFromName(std::string_view name);

/// The axes of a store's arrays: channels of a 2-D image, interleaved in every chunk; the slices of
/// a volume of one channel; or those of several channels, each with chunks and zarr shards of its
/// own.
enum class StoreAxes : std::uint8_t { kCyx, kZyx, kCzyx };

/// How pixels become zarr shards. The settings are part of the store's name: two ingests with equal
/// settings make equal stores.
struct ImageStoreSettings {
  StoreAxes axes = StoreAxes::kCyx;
  DType dtype = DType::kUint8;  ///< kUint8, kUint16, kInt16 or kFloat32
  int channels = 3;             ///< 1 under kZyx, 2 or more under kCzyx
  /// An inner chunk in pixels, one slice deep under kCyx. Larger means better compression and more
  /// bytes decoded for a small crop.
  Extent chunk = Flat(512, 512);
  /// A zarr shard in pixels, a multiple of the chunk. Larger means fewer files and longer tasks.
  Extent shard = Flat(4096, 4096);
  StoreCodec codec = StoreCodec::kBloscZstd;
  int codec_level = 5;  ///< 1..9 inside Blosc, 1..22 for plain zstd
  std::uint32_t blosc_block_bytes = 131072;
  /// Value of background, of the store's type. An inner chunk in which every element equals it is
  /// not stored.
  double fill_value = 255;

  bool IsVolume() const { return axes != StoreAxes::kCyx; }
  /// Channels of a chunk, interleaved.
  int ChunkChannels() const { return axes == StoreAxes::kCzyx ? 1 : channels; }
  /// How often the grid of zarr shards is there: once for each channel of a chunk's own.
  int Planes() const { return axes == StoreAxes::kCzyx ? channels : 1; }
  /// Bytes of a pixel of a chunk.
  std::int64_t PixelBytes() const {
    return ChunkChannels() * static_cast<std::int64_t>(SizeOf(dtype));
  }
  /// Inner chunks of one zarr shard along each axis.
  Extent ChunksPerShard() const { return CellsOf(shard, chunk); }
};

/// InvalidArgument naming the setting and its range.
Status Validate(const ImageStoreSettings& settings);

/// The settings of a volume's store: chunks of 64 and zarr shards of 256 voxels a side, background
/// -1024 where the type has it, else 0.
ImageStoreSettings VolumeSettings(DType dtype);

}  // namespace patchbay::zarr
