#include "runtime/format/zarr/codec/image_settings.h"

#include <string>

#include "runtime/core/channels.h"
#include "runtime/core/element.h"
#include "runtime/core/names.h"
#include "runtime/core/strings.h"

namespace patchbay::zarr {
namespace {

constexpr std::int64_t kMinChunkSide = 16;
constexpr std::int64_t kMaxChunkSide = 8192;
constexpr std::int64_t kMaxShardSide = 65536;
constexpr std::int64_t kMaxWrittenChunkBytes = std::int64_t{1} << 29;
/// Inner chunks of one zarr shard: its index is held in memory.
constexpr std::int64_t kMaxChunksInShard = std::int64_t{1} << 20;
constexpr std::int64_t kVolumeChunkSide = 64;
constexpr std::int64_t kVolumeShardSide = 256;
constexpr double kVolumeFill = -1024;

constexpr auto kCodecs = NamesInOrder<StoreCodec>("zstd", "lz4", "plain-zstd", "keep");

Status RefuseSetting(std::string_view setting, std::string_view cause) {
  return InvalidArgument("check store settings: ", setting, ": ", cause);
}

bool IsWritten(DType dtype) {
  return dtype == DType::kUint8 || dtype == DType::kUint16 || dtype == DType::kInt16 ||
         dtype == DType::kFloat32;
}

/// One axis of chunk and shard. Slices may be as few as one; y and x are kept from being silly.
Status CheckSide(std::string_view axis, std::int64_t chunk, std::int64_t shard,
                 std::int64_t lowest) {
  if (chunk < lowest || chunk > kMaxChunkSide) {
    return RefuseSetting("chunk",
                         StrCat(chunk, " along ", axis, " is not ", lowest, " to ", kMaxChunkSide));
  }
  if (shard < chunk || shard > kMaxShardSide || shard % chunk != 0) {
    return RefuseSetting("shard", StrCat(shard, " along ", axis,
                                         " is not a multiple of the chunk up to ", kMaxShardSide));
  }
  return absl::OkStatus();
}

Status CheckShapes(const ImageStoreSettings& s) {
  PB_RETURN_IF_ERROR(CheckSide("z", s.chunk.z, s.shard.z, 1));
  PB_RETURN_IF_ERROR(CheckSide("y", s.chunk.y, s.shard.y, kMinChunkSide));
  PB_RETURN_IF_ERROR(CheckSide("x", s.chunk.x, s.shard.x, kMinChunkSide));
  if (s.axes == StoreAxes::kCyx && s.shard.z != 1) {
    return RefuseSetting("shard", StrCat(s.shard.z, " slices of a 2-D image"));
  }
  if (s.chunk.Pixels() > kMaxWrittenChunkBytes / s.PixelBytes()) {
    return RefuseSetting("chunk", StrCat(s.chunk.ToString(), " pixels are more than ",
                                         kMaxWrittenChunkBytes, " bytes"));
  }
  if (s.ChunksPerShard().Pixels() > kMaxChunksInShard) {
    return RefuseSetting("shard", StrCat("more than ", kMaxChunksInShard, " chunks"));
  }
  return absl::OkStatus();
}

}  // namespace

std::string_view NameOf(StoreCodec codec) { return kCodecs.Of(codec); }

StatusOr<StoreCodec> StoreCodecFromName(std::string_view name) {
  if (const auto codec = kCodecs.Find(name)) return *codec;
  return RefuseSetting("codec", StrCat("'", name, "' is none of zstd, lz4, plain-zstd, keep"));
}

Status Validate(const ImageStoreSettings& s) {
  if (!IsWritten(s.dtype)) {
    return RefuseSetting(
        "dtype", StrCat(patchbay::NameOf(s.dtype), " is none of uint8, uint16, int16, float32"));
  }
  if (s.channels < 1 || s.channels > kMaxChannels) {
    return RefuseSetting("channels", StrCat(s.channels, " is not 1 to ", kMaxChannels));
  }
  if (s.axes == StoreAxes::kZyx && s.channels != 1) {
    return RefuseSetting("channels", StrCat(s.channels, " of a volume: it has one"));
  }
  if (s.axes == StoreAxes::kCzyx && s.channels == 1) {
    return RefuseSetting("channels", "1 of a volume of several");
  }
  PB_RETURN_IF_ERROR(CheckShapes(s));
  const int highest =
      s.codec == StoreCodec::kBloscLz4 || s.codec == StoreCodec::kBloscZstd ? 9 : 22;
  if (s.codec_level < 1 || s.codec_level > highest) {
    return RefuseSetting("codec-level", StrCat(s.codec_level, " is not 1 to ", highest));
  }
  if (s.blosc_block_bytes < 4096 || s.blosc_block_bytes > (1u << 24)) {
    return RefuseSetting("blosc_block_bytes",
                         StrCat(s.blosc_block_bytes, " is not 4096 to 16777216"));
  }
  if (!ElementOf(s.fill_value, s.dtype)) {
    return RefuseSetting(
        "fill_value", StrCat(s.fill_value, " is not a value of ", patchbay::NameOf(s.dtype), " (",
                             RangeOf(s.dtype), ")"));
  }
  return absl::OkStatus();
}

ImageStoreSettings VolumeSettings(DType dtype) {
  ImageStoreSettings s;
  s.axes = StoreAxes::kZyx;
  s.dtype = dtype;
  s.channels = 1;
  s.chunk = {kVolumeChunkSide, kVolumeChunkSide, kVolumeChunkSide};
  s.shard = {kVolumeShardSide, kVolumeShardSide, kVolumeShardSide};
  s.fill_value = ElementOf(kVolumeFill, dtype) ? kVolumeFill : 0;
  return s;
}

}  // namespace patchbay::zarr
